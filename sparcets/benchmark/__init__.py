"""Benchmark: every method on every data set, one line of results per cell, resumable at any point."""
