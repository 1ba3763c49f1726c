"""Front ends for user kernels: elementwise functions, kernels of loops, and ops made of either."""
