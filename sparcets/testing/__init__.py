"""For those who write a method: the checks it must pass, and small data to try it on."""

from sparcets.testing.checks import CHECKS, Subject, check_explainer

__all__ = ["CHECKS", "Subject", "check_explainer"]
