"""Elementwise functions: those of the op table's rows, and those composed of them."""
