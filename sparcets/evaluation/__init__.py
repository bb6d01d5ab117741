"""Evaluation: every measure of an explanation at once, judges of several families, and paired comparisons."""
