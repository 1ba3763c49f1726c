cpdef pool_objects(object kind)
