"""THE table of ops and what each computes, in the loop language.

`table` has a row for each op; its neighbours the algorithms: arithmetic, elementary functions with
their coefficients, Philox, sorting, scans, scatters. An op says its dtype rule, its expression or
kernels (built with a `site`) and its gradient; nothing here knows devices, memory or tensors.
"""
