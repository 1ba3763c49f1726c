"""Planning: which pending ops become which kernels, and what these kernels materialise.

Nothing here allocates, compiles or launches.
"""
