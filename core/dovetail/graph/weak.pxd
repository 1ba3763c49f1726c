cpdef object weakly(object x)
