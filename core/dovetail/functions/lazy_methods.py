"""Methods that `public` declares in modules that are loaded at their first use.

Written by tools/faces.py.
"""

LAZY_METHODS = {  # module -> methods
    ".linalg.torch_functions": "renorm renorm_",
    "elementwise.composed": "fmax_ fmin_ fmod_ logaddexp2_ unwrap_",
    "elementwise.decompose": "frexp nan_to_num nan_to_num_",
    "elementwise.special_functions": "expit_",
    "indexing.index_reductions": (
        "index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_ masked_scatter "
        "masked_scatter_ scatter_add scatter_reduce scatter_reduce_"
    ),
    "indexing.selection": "choose put put_along_axis",
    "io.arrow": "__arrow_c_array__",
    "products.vector_products": "cross dot inner kron vdot",
    "random.discrete_samplers": "binomial_ poisson_",
    "random.samplers": "bernoulli_ exponential_ laplace_ truncated_normal_",
    "reductions.covariance": "corrcoef cov ptp",
    "reductions.histograms": "bincount histogram",
    "reductions.nan_functions": (
        "nanargmax nanargmin nancumprod_ nancumsum_ nanmax nanmean nanmin nanstd nansum nanvar"
    ),
    "reductions.order_statistics": "median nanmedian nanquantile percentile quantile",
    "shape.orientation": "diag diagflat fliplr fliplr_ flipud flipud_ rot90 trace",
    "shape.strides": "element_size is_complex is_floating_point",
    "sorting.unique": "unique",
    "torch_functions": (
        "addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addmv_ amax amin baddbmm compress "
        "diag_embed float_power gather index_select lerp lerp_ masked_select multinomial narrow "
        "new_empty new_full new_ones new_tensor new_zeros repeat_interleave select take_along_dim"
        " unflatten unfold view_as where"
    ),
    "torch_order_functions": "bucketize cummax cummin histc kthvalue mode unique_consecutive",
}
