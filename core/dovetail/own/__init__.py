"""Kernels of one's own: Python and C text of the user's, as kernels and ops on every device."""
