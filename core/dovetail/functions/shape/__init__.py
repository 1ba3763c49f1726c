"""Shapes, views and copies in another arrangement."""
