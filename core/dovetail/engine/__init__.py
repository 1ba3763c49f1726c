"""Evaluation: a graph is recognised (`guards`) or planned, compiled and launched (`evaluate`).

The only room that launches kernels.
"""
