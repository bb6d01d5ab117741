"""Answers as text, figures and reports."""
