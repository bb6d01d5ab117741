"""For authors of methods: the checks that a method must pass, and small data."""

from sparcets.testing.checks import CHECKS, Subject, check_explainer

__all__ = ["CHECKS", "Subject", "check_explainer"]
