"""NumPy's functions and ufuncs on tensors."""
