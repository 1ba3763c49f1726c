"""Graph to plan: which pending ops become which kernels, and what these store.

Nothing here allocates, compiles or launches.
"""
