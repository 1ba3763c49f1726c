"""Evaluation: a graph is recognised (`guards`) or planned (`evaluation`), its kernels are compiled
(`programs`) and launched (`launching`).
"""
