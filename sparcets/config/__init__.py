"""Configuration: the settings of every component, without torch."""
