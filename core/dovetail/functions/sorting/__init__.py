"""Sorting, distinct elements and set operations."""
