"""Deferred work: nodes of pending ops (`expr`) and their reference counts (`ownership`).

This package neither plans nor runs anything.
"""
