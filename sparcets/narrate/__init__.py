"""Explanations in words: single answers (``text.py``) and the quality of a whole set (``quality.py``)."""
