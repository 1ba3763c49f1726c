# `domain.py` is compiled as it is.
