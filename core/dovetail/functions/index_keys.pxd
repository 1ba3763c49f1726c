# `index_keys.py` is compiled as it is.
