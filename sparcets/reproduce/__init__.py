"""The paper again: its tables and figures from our own runs, beside its numbers and beside the truth."""
