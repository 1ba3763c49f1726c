# `indexing.py` is compiled as it is.
