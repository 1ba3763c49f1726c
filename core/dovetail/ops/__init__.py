"""The table of ops, and the computation of each op in the kernel IR.

`table` has a row for each op; the other modules have the algorithms: arithmetic, elementary
functions with their coefficients, Philox, sorting, scans, scatters. An op has a dtype rule, an
expression or kernels (built with a `kernel_context`) and a gradient. This package knows no devices,
memory or tensors.
"""
