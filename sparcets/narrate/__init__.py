"""Explanations in words: single answers (``sentences.py``) and the quality of a whole set (``quality.py``)."""
