"""Experiments: the benchmark, and the reproduction of the paper."""
