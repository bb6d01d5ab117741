"""Measures of explanations, judges of several families, and paired comparisons."""
