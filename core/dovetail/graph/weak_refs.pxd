cpdef object weakly(object x)
cpdef object referent(object r)
cpdef list alive(list refs)
