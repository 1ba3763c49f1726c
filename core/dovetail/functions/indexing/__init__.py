"""Reading and writing at indices, masks and positions."""
