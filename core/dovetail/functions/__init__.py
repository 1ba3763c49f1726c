"""The public functions by theme, and the methods made of them.

Each is written in terms of tensors and rows of the table of ops; nothing here launches a kernel.
"""
