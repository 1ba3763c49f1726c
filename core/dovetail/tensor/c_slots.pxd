# Compiled from `c_slots.pyx`. Only Python calls its functions, by the type slots of Tensor.
