"""The server: a fitted explainer behind HTTP, for programs; requests are answered in batches by worker processes."""
