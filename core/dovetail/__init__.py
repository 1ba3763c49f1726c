"""dovetail (being assembled)."""
