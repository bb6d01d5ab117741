"""Explanations: the result object, and its parts."""
