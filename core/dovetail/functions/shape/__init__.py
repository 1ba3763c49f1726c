"""Reshaping, views, and copies in another arrangement."""
