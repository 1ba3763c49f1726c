"""Reports about work that dovetail did or would do: `explain`, `profile` and pictures.

They read state and change nothing.
"""
