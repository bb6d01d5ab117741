"""The command line: one command, one file, each a few lines around the library."""
