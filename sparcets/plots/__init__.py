"""Pictures of explanations; needs ``sparcets[plots]``."""
