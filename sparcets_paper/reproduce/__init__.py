"""Reproduction of the paper: its tables and figures from our own runs, compared with its numbers."""
