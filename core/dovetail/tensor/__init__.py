"""What a user holds: `Tensor`, its printing, and tensors of layouts other than strided."""
