"""Engines: backends that run independent tasks."""
