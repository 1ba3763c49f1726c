"""The conformance kit: pytest cases that compare a backend with the reference, bit by bit.

    dovetail test-backend NAME [--report out.json]
    pytest --pyargs dovetail.testing --dovetail-device=NAME

Levels, from the ground up. Kernels, without tensors: `test_lifecycle`, `test_allocator`,
`test_scalar_ops`, `test_layouts`, `test_reductions`, `test_streams`. Tensors: `test_table`,
`test_counting`, `test_runs`, `test_fusion`, `test_gradients`, `test_sparse`, `test_complex`,
`test_limits`.

A backend declares its gaps in the hook `dovetail_conformance`: {pattern of case names, as in
"scalar_ops.*.fma-*": reason}. Such a case must fail; if it passes, or no case has such a name, the
kit fails.
"""
