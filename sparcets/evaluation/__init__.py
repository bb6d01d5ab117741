"""Evaluation: every measure of an explanation at once, judges of other architectures, and paired comparisons."""
