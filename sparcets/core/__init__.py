"""The nouns: series, constraints, targets, explanations, settings, errors; numpy only."""
