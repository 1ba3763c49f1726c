"""Kernels of one's own: elementwise functions, kernels of loops, and ops made of either."""
