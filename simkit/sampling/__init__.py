"""A pair, a rule and a seed to a tally."""
