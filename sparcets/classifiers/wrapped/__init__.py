"""Models of the user, by kind: what each is called with, and what it returns."""
