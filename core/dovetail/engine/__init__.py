"""Evaluation of graphs.

A graph is matched against cached graphs (`plan_cache`) or planned (`evaluation`); its kernels are
compiled (`programs`) and launched (`launching`).
"""
