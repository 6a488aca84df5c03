"""The laws that are simulated: rows, pairs, and where they come from; NumPy only."""
