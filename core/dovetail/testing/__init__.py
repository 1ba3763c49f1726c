"""The conformance kit: what every backend must do, as pytest cases. Expected bits come from the
reference.

    dovetail test-backend NAME [--report out.json]
    pytest -p dovetail.testing.plugin --pyargs dovetail.testing --dovetail-device=NAME

Levels, from the ground up: `test_lifecycle`, `test_allocator`, `test_scalar_ops`,
`test_layouts`, `test_reductions`,
`test_streams` (kernels, without tensors), then `test_table` and `test_fusion` (tensors). A
backend declares what it
cannot do in the hook `dovetail_conformance`: {pattern of case names, as in "scalar_ops.fma*":
reason}.
"""
