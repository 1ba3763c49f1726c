"""The loop language: what a device is asked to compute, and the passes over it.

`language` has its values and operations, `builder` makes kernels, `printer` and `parser` turn them
into text and back, `verify` says whether one is well formed. `legalize`, `unroll_jam` and `coarsen`
rewrite; `cstyle` prints C for backends that compile it. Nothing here knows a tensor, the name of an
op or a device, only what a `target` says of itself.
"""
