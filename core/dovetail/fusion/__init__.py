"""Graph to plan: which pending ops become which kernels, and what these materialise.

Nothing here allocates, compiles or launches.
"""
