"""Reports: a self-contained HTML page, and tables in Markdown, CSV and LaTeX."""
