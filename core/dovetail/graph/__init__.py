"""Deferred work: nodes of pending ops (`expr`), and who else holds a value (`ownership`).

Nothing here plans or runs anything.
"""
