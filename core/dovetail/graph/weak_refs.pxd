cpdef object weakly(object x)
cpdef object referent(object r)
cpdef list live_refs(list refs)
