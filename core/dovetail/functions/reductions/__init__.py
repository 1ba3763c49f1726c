"""Sums, extremes, statistics and running sums, and functions of samples along an axis."""
