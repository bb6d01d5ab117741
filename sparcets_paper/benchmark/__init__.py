"""Benchmark: methods on data sets, one line of results per cell, resumable at any point."""
