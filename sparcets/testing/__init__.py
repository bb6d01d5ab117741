"""For those who write a method: the checks it must pass, and small data to try it on."""
