"""Tables of PyTorch's names: what the namespaces of `dovetail.torch`  from which package."""

from __future__ import annotations

# Names of `torch` that mean the same in `dt`; functions get results of class `torch.Tensor`.
SAME_NAMES = """
    Event OutOfMemoryError Stream abs absolute acos acosh add addcdiv addcmul addmm addmv all
    allclose amax amin angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    are_deterministic_algorithms_enabled argmax argmin argwhere as_strided as_tensor asarray
    asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d autocast baddbmm
    bartlett_window bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor blackman_window block_diag bmm bool broadcast_shapes
    broadcast_tensors broadcast_to bucketize can_cast cat cdist cdouble ceil cfloat cholesky
    chunk clamp clip clone column_stack complex128 complex64 concat concatenate conj copysign
    corrcoef cos cosh count_nonzero cov cross cummax cummin cumprod cumsum deg2rad det diag
    diag_embed diagflat diagonal diff digamma divide dot double dsplit dstack e empty empty_like
    enable_grad eq erf erfc erfinv exp exp2 expm1 eye finfo flatten fliplr flipud float
    float16 float32 float64 float_power floor fmax fmin fmod frexp from_dlpack
    from_numpy full full_like gather gcd ge ger get_autocast_dtype get_default_device
    get_default_dtype get_num_threads get_rng_state gradient greater greater_equal gt half
    hamming_window hann_window heaviside histc hsplit hstack hypot i0 iinfo imag index_add
    index_copy index_fill index_reduce index_select inf inference_mode inner int16 int32 int64
    int8 inverse is_autocast_enabled is_complex is_floating_point is_grad_enabled
    is_inference_mode_enabled isclose
    isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kron kthvalue lcm
    ldexp le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit
    logspace logsumexp long lt masked_fill masked_scatter masked_select matmul matrix_exp
    matrix_power maximum mean minimum mm mode moveaxis movedim mul multinomial multiply mv nan
    nan_to_num nanmean nanquantile nansum narrow ne neg negative newaxis nextafter no_grad
    norm not_equal ones ones_like outer permute pi pinverse polygamma positive pow prod
    promote_types qr quantile rad2deg rand rand_like randn randn_like randperm ravel real
    reciprocal relu remainder renorm repeat_interleave reshape result_type roll rot90 round
    row_stack rsqrt scatter scatter_add scatter_reduce searchsorted set_default_device
    set_default_dtype set_grad_enabled set_num_threads set_printoptions set_rng_state short
    sigmoid sign signbit sin sinc sinh slogdet softmax sparse_bsr sparse_bsr_tensor sparse_coo
    sparse_coo_tensor sparse_csc sparse_csc_tensor sparse_csr sparse_csr_tensor split sqrt
    square stack stft strided sub subtract sum swapaxes swapdims t take_along_dim tan
    tanh tensor_split tensordot tile topk trace transpose trapezoid trapz tril tril_indices
    triu triu_indices true_divide trunc uint16 uint32 uint64 uint8 unbind unflatten
    unique_consecutive unravel_index unsqueeze use_deterministic_algorithms vander vdot vsplit
    vstack xlogy zeros zeros_like
"""
# Functions of `dt.nn.functional` that `torch` has, too.
FUNCTIONAL_NAMES = """
    adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d bilinear celu
    channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    cosine_similarity dropout feature_alpha_dropout group_norm hardshrink layer_norm
    max_pool1d max_pool2d max_pool3d pairwise_distance pixel_shuffle pixel_unshuffle prelu
    rms_norm rrelu selu threshold
"""
OTHER_SOURCES = {  # of `torch`, in `dt`
    "chain_matmul": "linalg.multi_dot",
    "cholesky_solve": "linalg.cholesky_solve",
    "detach": "autograd.detach",
    "dtype": "DType",
    "fix": "trunc",
    "int": "int32",
    "lu_solve": "linalg.lu_solve",
    "poisson": "random.poisson",
    "sgn": "sign",
    "svd": "linalg.svd",
    "conj_physical": "conj",
}
# Transforms of functions.
TRANSFORMS = """
    grad hessian hvp jacfwd jacobian jacrev jvp linearize value_and_grad vjp vmap
"""
DEVICE_KINDS = ("cuda", "mps", "xpu")  # with a namespace of functions
# Namespaces that take all names of a package of `dt`.
NAMESPACES = {
    "amp": "amp",
    "autograd": "autograd",
    "distributions": "distributions",
    "fft": "fft",
    "func": "func",
    "linalg": "linalg",
    "nn": "nn",
    "nn.functional": "nn.functional",
    "nn.init": "nn.init",
    "nn.utils": "nn.utils",
    "nn.utils.parametrizations": "nn.utils.parametrizations",
    "nn.utils.parametrize": "nn.utils.parametrize",
    "nn.utils.rnn": "nn.utils.rnn",
    "optim": "optim",
    "optim.lr_scheduler": "optim.lr_scheduler",
    "optim.swa_utils": "optim.swa_utils",
    "random": "random",
    "special": "special",
    "utils": "",
    "utils.checkpoint": "autograd",
    "utils.data": "data",
    "utils.tensorboard": "tensorboard",
    "nn.parameter": "nn",
    "nn.modules": "nn",
    "cuda": "",
    "cuda.amp": "amp",
    "mps": "",
    "xpu": "",
    "backends": "",
    "autograd.functional": "autograd",
    "distributions.kl": "distributions",
    "distributions.constraints": "distributions.constraints",
    "distributions.transforms": "distributions",
}
