"""Data sets: one module per source, all loaded through :func:`load_dataset`."""
