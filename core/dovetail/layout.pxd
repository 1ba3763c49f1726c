# `layout.py` is compiled as it is: planning sees each value through its moves.
