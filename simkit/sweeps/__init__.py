"""Grids of tasks, and the store of their results."""
