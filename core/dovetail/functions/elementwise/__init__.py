"""Elementwise functions: one per op-table row, and compositions of several ops."""
