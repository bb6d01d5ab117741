"""Our own method, in the order of its work: ``explainer.py`` says it."""
