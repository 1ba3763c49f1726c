"""Functions captured: what one did to memory is noted (`recorder`) and done again (`program`).

It knows nodes and launches, not tensors.
"""
