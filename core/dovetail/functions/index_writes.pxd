# `index_writes.py` is compiled as it is.
