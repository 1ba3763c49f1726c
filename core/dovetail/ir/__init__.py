"""The kernel IR, which describes what a device computes, and the passes over it.

`language` has its values and operations, `builder` makes kernels, `printer` and `parser` turn them
into text and back, `verify` checks that one is well formed. `analysis` answers the questions by
which passes and backends choose; `legalize`, `unroll_jam` and `coarsen` copy a kernel with
`rewrite` and change it; `cstyle` prints C for backends that compile it, one `schedule` of a kernel
at a time. This package knows no tensors, ops or devices, only what a `target` says of a device.
"""
