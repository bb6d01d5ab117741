"""Training: one loop for everything that is trained here."""
