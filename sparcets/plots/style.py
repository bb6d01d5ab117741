"""Colours and fonts of all pictures, chosen so that colour-blind readers can tell them apart (Okabe and Ito)."""

from __future__ import annotations

BEFORE = "#5b5b5b"
AFTER = "#0072b2"
MARK = "#e69f00"
FIXED = "#b0b0b0"
DIVERGING = "RdBu_r"  # white in the middle: no change

RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.frameon": False,
    "figure.dpi": 110,
}
