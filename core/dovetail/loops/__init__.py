"""The loop language: what a device is asked to compute, and the passes over it.

`language` has its values and operations, `builder` makes kernels, `printer` and `parser` turn them
into text and back, `verify` says whether one is well formed. `analysis` reads off what passes and
backends choose by; `legalize`, `unroll_jam` and `coarsen` copy by `rewrite` and change; `cstyle`
prints C for backends that compile it, one `schedule` of a kernel at a time. Nothing here knows a
tensor, the name of an op or a device, only what a `target` says of itself.
"""
