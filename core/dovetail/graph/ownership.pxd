cpdef bint is_held_alike(list nodes, list uses, list held)
