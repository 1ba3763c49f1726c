cpdef keep(type kind)
