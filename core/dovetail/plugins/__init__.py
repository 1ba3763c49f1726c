"""Installed backends: found by entry points, registered when first named, opened once.

No op comes this way: what has been opened is asked directly.
"""
