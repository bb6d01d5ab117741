"""The studio: a local page on which a person asks and looks, and the API behind it."""
