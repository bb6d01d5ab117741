"""Engines: where pieces of work run. Nothing else knows."""
