"""The basic types: series, constraints, targets, explanations, settings, errors; numpy only."""
