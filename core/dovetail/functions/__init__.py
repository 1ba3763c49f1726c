"""The public functions, arranged by theme, and the methods that are built from them.

All are written in terms of tensors and rows of the op table; no function here launches a kernel.
"""
