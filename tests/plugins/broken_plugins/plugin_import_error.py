"""Imports what is not installed."""
