"""Small dtypes for dovetail: float8_e4m3, float8_e5m2, int4_32 and int8_32.

dovetail finds them by name, as in `x.astype("int8_32")`. `dovetail_dtypes.linear` quantises
networks.
"""

__version__ = "0.1.0"
