"""Evaluation: recognised (`guards`) or planned (`evaluation`), compiled (`programs`), launched.

`launching` has the launches.
"""
