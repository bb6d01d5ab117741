"""The commands that the package adds to ``sparcets``."""

import logging
import sys

if sys.stderr is not None and not sys.stderr.isatty():
    # No progress bar is drawn, so log messages show the progress of long runs.
    logging.getLogger("sparcets_paper.benchmark").setLevel(logging.INFO)
