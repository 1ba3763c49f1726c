"""Tensors of values, and of nothing but a shape."""
