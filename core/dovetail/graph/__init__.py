"""Deferred work: nodes of pending ops (`expr`) and their reference counts (`refcount`).

This package neither plans nor runs anything.
"""
