"""Measures of explanations: plain functions of an :class:`~sparcets.Explanation`, one value per answer."""
