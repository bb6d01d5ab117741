"""Our own method. ``explainer.py`` holds the order of fit and explain; each step has a file of its own."""
