"""Classifiers of families that have nothing in common with a network: fitted in closed form, yet differentiable."""
