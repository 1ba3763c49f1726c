"""Creation of tensors from values or from a shape alone."""
