"""Campaigns: thousands of random trials of what the README promises.

Each module holds one kind of campaign. A small dose of every campaign is part of ``make test``; ``make campaign`` runs
the whole, about half an hour on two cores, and prints how many trials were made and how many failed.
"""
