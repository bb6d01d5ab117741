"""Figures of explanations, methods and trainings; needs ``sparcets[plots]``."""
