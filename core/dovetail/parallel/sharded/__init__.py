"""The layout `sharded`: a tensor whose parts along one axis are on the ranks of a group."""

from . import (
    planned_group,
    sharded_indexing,
    sharded_products,
    sharded_reductions,
    sharded_rules,
)
from .sharded_tensor import ShardedTensor, from_local, shard

__all__ = ["ShardedTensor", "from_local", "shard"]

ShardedTensor.rules = {
    "apply": sharded_rules.elementwise,
    "reduce": sharded_reductions.reduction,
    "variance": sharded_reductions.variance,
    "view": sharded_rules.view,
    "concat": sharded_rules.concat,
    "index": sharded_indexing.index,
    "index_by": sharded_indexing.index,
    "nonzero": sharded_indexing.nonzero,
    "matmul": sharded_products.matmul,
    "softmax": sharded_rules.softmax,
    "log_softmax": sharded_rules.log_softmax,
    "along": sharded_rules.call_along_axes,
    "sort": sharded_rules.sort,
    "diagonal": sharded_rules.diagonal,
    "kron": sharded_rules.kron,
    "triangle": sharded_rules.triangle,
    "constant": sharded_rules.constant,
    "trace": planned_group.trace,
    "to_device": sharded_rules.to_device,
    "to_dense": sharded_rules.to_dense,
}
