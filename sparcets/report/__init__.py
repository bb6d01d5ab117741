"""Results as things to read: tables in Markdown, CSV and LaTeX."""
