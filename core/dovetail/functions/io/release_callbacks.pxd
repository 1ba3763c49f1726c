cpdef object new_capsule(size_t address, bytes name)
