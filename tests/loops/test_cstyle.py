"""Kernels as C, compiled for the host, beside the reference interpreter."""

from __future__ import annotations

from cstyle_cases import (  # noqa: F401 - the cases of every dialect, on plain C
    host,
    test_a_dtype_without_a_type_is_refused,
    test_a_reduction_of_chunks_of_chunks,
    test_atomics,
    test_casts_and_bitcasts,
    test_constants_are_exact,
    test_elementary_functions,
    test_every_operation_on_special_values,
    test_folds_see_their_carries_before_the_step,
    test_golden_kernels,
    test_integer_constants_reach_their_ends,
    test_names_that_mean_something_in_c,
    test_nested_reductions_and_maps,
    test_random_kernels,
    test_reductions_of_every_length,
    test_rounding_of_large_integers_and_of_float64,
    test_text_has_the_names_of_the_kernel,
    test_which_kernels_a_group_can_share,
)
