cpdef pool_objects(type kind)
