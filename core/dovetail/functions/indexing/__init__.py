"""Reads and writes at indices, masks and positions."""
