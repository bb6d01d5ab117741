"""Constraints: what an answer may not do, and how answers obey."""
