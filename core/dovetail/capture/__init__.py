"""Captured functions: `dt.jit`, loops and branches, and their files.

A call runs a function while a tracer notes what that does to memory (`tracer`, `session`), as a
program (`program`, `loop_acts`). Later calls read the inputs again and replay the program (`jit`,
`executable`). `closures` finds what a function reads beside its arguments, `bindings` says where
each input of the program comes from. `control_flow` has loops and branches, `grads` the way back,
`files` what is saved.

The package is not called `jit`, because `dovetail.jit` is the function.
"""
