"""Sorting, and distinct elements."""
