# Compiled from `slots.pyx`; nobody calls its functions but Python, by the slots of Tensor.
