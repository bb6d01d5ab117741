"""Explanations in words: answers (``text.py``) and measures of a whole set (``quality.py``)."""
