# Compiled from `slots.pyx`. Only Python calls its functions, by the type slots of Tensor.
