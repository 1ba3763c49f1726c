"""The class `Tensor`, its printing, and tensors of layouts other than strided."""
