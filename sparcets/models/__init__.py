"""Models: ours to train, and yours to wrap."""
