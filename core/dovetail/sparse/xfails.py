"""Declared gaps of the sparse layouts, for the layout kit (`dovetail test-layout sparse_coo`).

A gap is a test case of strided tensors that has no meaning here, or a different one.
"""

from __future__ import annotations

DENSE_RESULT_REASON = "it gives something else than 0 for zeros, so the result would be dense"
STRIDED_OPERAND_REASON = "beside a strided operand the result would be dense"

_NONZERO_AT_ZERO_OPS = (
    "acos acosh beta bitwise_invert cos cosh digamma divide equal erfc exp exp2 gamma"
    " greater_equal i0 isfinite less_equal lgamma log log10 log2 logaddexp logical_not logit ndtr"
    " ndtri pow reciprocal rsqrt sigmoid sinc zeta"
    " floor_divide-float32 python_floor_divide-float32 remainder-float32"  # of integers 0 by 0 is 0
)
_SPECIAL_VALUE_OPS = (
    "acos acosh cos cosh digamma erfc exp exp2 gamma i0 isfinite lgamma log log10 log2 logical_not"
    " logit ndtr ndtri reciprocal rsqrt sigmoid sinc"
)
_STRIDED_OPERAND_OPS = (
    "add atan2 beta bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign equal"
    " floor_divide gcd greater greater_equal heaviside hypot ldexp less less_equal logaddexp"
    " logical_or logical_xor maximum minimum nextafter not_equal pow python_floor_divide remainder"
    " subtract xlogy zeta"
)
_NUMBER_OPERAND_OPS = {
    "layout first-2": "add beta heaviside hypot less less_equal logaddexp logical_or logical_xor"
    " maximum nextafter not_equal subtract zeta",
    "layout first-0": "beta divide equal floor_divide greater_equal less_equal logaddexp pow"
    " python_floor_divide remainder zeta",
    "number first-2": "add atan2 beta copysign divide floor_divide greater greater_equal heaviside"
    " hypot ldexp logaddexp logical_or logical_xor maximum nextafter not_equal pow"
    " python_floor_divide remainder subtract xlogy zeta",
    "number first-0": "beta divide equal floor_divide greater_equal less_equal logaddexp pow"
    " python_floor_divide remainder zeta",
}


def gaps() -> dict[str, str]:
    """Return the reason of each gap, keyed by a pattern of case names."""
    return {
        **{
            f"apply.of_layouts.{op}{'' if '-' in op else '-*'}": DENSE_RESULT_REASON
            for op in _NONZERO_AT_ZERO_OPS.split()
        },
        **{
            f"apply.special_values.{op}-*": DENSE_RESULT_REASON for op in _SPECIAL_VALUE_OPS.split()
        },
        **{
            f"apply.with_strided.{op}-*": STRIDED_OPERAND_REASON
            for op in _STRIDED_OPERAND_OPS.split()
        },
        "apply.with_strided.divide-*-strided first": STRIDED_OPERAND_REASON,
        **{
            f"apply.with_numbers.{op}-*-{which}": DENSE_RESULT_REASON
            for which, ops in _NUMBER_OPERAND_OPS.items()
            for op in ops.split()
        },
        "reduce.softmax.*": "sums ascend, over the entries alone",
    }
