"""What the studio and the server share as web applications: token, errors, limits, connections and addresses."""
