# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn.functional`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Callable, Sequence
from dovetail.extend import DTypeLike
from dovetail.nn.functional.adaptive import MaxPoolResult, OutputSize
from dovetail.nn.functional.ctc import Lengths
from dovetail.nn.functional.pooling import MaxPoolResult as MaxPoolResultPooling
from dovetail.nn.functional.score_functions import BlockMask, MaskMod, ScoreMod
from dovetail.nn.functional.sizes import Sizes
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, Literal, overload

from dovetail.nn.functional import BlockMask as BlockMask
def adaptive_avg_pool1d(input: AnyTensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows that cover signals evenly."""
def adaptive_avg_pool2d(input: AnyTensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows of images; see `adaptive_avg_pool1d`."""
def adaptive_avg_pool3d(input: AnyTensor, output_size: OutputSize) -> Tensor:
    """Return the means of a given number of windows of volumes; see `adaptive_avg_pool1d`."""
def adaptive_max_pool1d(
    input: AnyTensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the largest elements of a given number of windows of signals."""
def adaptive_max_pool2d(
    input: AnyTensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the maxima of a given number of windows of images; see `adaptive_max_pool1d`."""
def adaptive_max_pool3d(
    input: AnyTensor, output_size: OutputSize, return_indices: bool = False
) -> MaxPoolResult:
    """Return the maxima of a given number of windows of volumes; see
    `adaptive_max_pool1d`."""
def affine_grid(
    theta: AnyTensor, size: Sequence[int], align_corners: bool | None = None
) -> Tensor:
    """Return the positions, from -1 to 1 along each axis, to which affine maps move a
    grid's."""
def alpha_dropout(
    input: AnyTensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply dropout for `selu`: dropped values become its limit; mean and variance stay."""
def avg_pool1d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of signals."""
def avg_pool2d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of images; see `avg_pool1d`."""
def avg_pool3d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of volumes; see `avg_pool1d` and `avg_pool2d`."""
def batch_norm(
    input: AnyTensor,
    running_mean: AnyTensor | None,
    running_var: AnyTensor | None,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    training: bool = False,
    momentum: float | AnyTensor = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each channel, times `weight`, plus `bias`; in training, update running
    statistics."""
def bilinear(
    input1: AnyTensor, input2: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None
) -> Tensor:
    """Return `input1 @ weight[k] @ input2` for each k, plus the bias."""
def binary_cross_entropy(
    input: AnyTensor,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -(t log(x) + (1 - t) log(1 - x)); logarithms are no less than -100."""
def binary_cross_entropy_with_logits(
    input: AnyTensor,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: AnyTensor | None = None,
) -> Tensor:
    """Return `binary_cross_entropy` of sigmoid(input), without overflow."""
def celu(input: AnyTensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else alpha * (exp(x / alpha) - 1)."""
def channel_shuffle(input: AnyTensor, groups: int) -> Tensor:
    """Reorder channels: the first of each group, then the second of each group, and so on."""
def conv1d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of signals with filters: sums of products at each position."""
def conv2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of images with filters; see `conv1d`."""
def conv3d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of volumes with filters; see `conv1d`."""
def conv_transpose1d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv1d` at `input`: each element is spread by a filter."""
def conv_transpose2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv2d` at `input`; see `conv_transpose1d`."""
def conv_transpose3d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transpose of `conv3d` at `input`; see `conv_transpose1d`."""
def cosine_embedding_loss(
    input1: AnyTensor,
    input2: AnyTensor,
    target: AnyTensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - cos(angle) where the target is 1, max(0, cos - margin) where it is -1."""
@overload
def cosine_similarity(x1: AnyTensor, x2: AnyTensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Return the cosine of the angle between two tensors along an axis."""
@overload
def cosine_similarity(
    input: AnyTensor, other: AnyTensor, dim: int = 1, eps: float = 1e-08
) -> Tensor: ...
def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
) -> BlockMask:
    """Return the mask of a function, for `flex_attention`."""
def cross_entropy(
    input: AnyTensor,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of softmax(input) and the target: classes or probabilities."""
def ctc_loss(
    log_probs: AnyTensor,
    targets: AnyTensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the logarithm of the probability of each target, over all alignments."""
def dropout(
    input: AnyTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each value to 0 with probability `p`, and divide the others by 1 - p."""
def dropout1d(
    input: AnyTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p."""
def dropout2d(
    input: AnyTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p."""
def dropout3d(
    input: AnyTensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p."""
def elu(input: AnyTensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else alpha * (exp(x) - 1)."""
def embedding(
    input: AnyTensor,
    weight: AnyTensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return rows of `weight` by index; with `max_norm`, first scale these rows in place."""
def embedding_bag(
    input: AnyTensor,
    weight: AnyTensor,
    offsets: AnyTensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: AnyTensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return sums, means or maxima of bags of rows; with `max_norm`, scale rows in place."""
def feature_alpha_dropout(
    input: AnyTensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply `alpha_dropout` to whole channels."""
@overload
def flex_attention(
    query: AnyTensor,
    key: AnyTensor,
    value: AnyTensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: Literal[False] = False,
    *,
    mask_mod: MaskMod | None = None,
) -> Tensor:
    """Return attention with functions that change and mask the scores."""
@overload
def flex_attention(
    query: AnyTensor,
    key: AnyTensor,
    value: AnyTensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    return_lse: Literal[True],
    mask_mod: MaskMod | None = None,
) -> tuple[Tensor, Tensor]: ...
def fold(
    input: AnyTensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Return images whose patches are columns, summed where they overlap; see `dt.fold`."""
def gaussian_nll_loss(
    input: AnyTensor,
    target: AnyTensor,
    var: AnyTensor | float,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log density of `target` under normal distributions."""
def gelu(input: AnyTensor, approximate: str = "none") -> Tensor:
    """Return x times the probability that a standard normal variable is below x."""
def glu(input: AnyTensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times the sigmoid of the second half."""
def grid_sample(
    input: AnyTensor,
    grid: AnyTensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images at fractional positions."""
def group_norm(
    input: AnyTensor,
    num_groups: int,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each group of channels of each example to mean 0 and variance 1."""
def gru_cell(
    input: AnyTensor,
    hx: AnyTensor,
    w_ih: AnyTensor,
    w_hh: AnyTensor,
    b_ih: AnyTensor | None = None,
    b_hh: AnyTensor | None = None,
) -> Tensor:
    """Return the hidden state after a step of a GRU."""
def gumbel_softmax(
    logits: AnyTensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draw from the distributions of `logits`, with gradients to them."""
def hardshrink(input: AnyTensor, lambd: float = 0.5) -> Tensor:
    """Return the input where its magnitude is greater than `lambd`, else 0."""
def hardsigmoid(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return x / 6 + 1/2, clipped to 0 and 1."""
def hardswish(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return x times its `hardsigmoid`."""
def hardtanh(
    input: AnyTensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return the input, clipped to `min_val` and `max_val`."""
def hinge_embedding_loss(
    input: AnyTensor,
    target: AnyTensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return x where the target is 1, max(0, margin - x) where it is -1."""
def huber_loss(
    input: AnyTensor,
    target: AnyTensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: AnyTensor | None = None,
) -> Tensor:
    """Return d**2 / 2 for differences d up to `delta`, else delta * (|d| - delta / 2)."""
def instance_norm(
    input: AnyTensor,
    running_mean: AnyTensor | None = None,
    running_var: AnyTensor | None = None,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each channel of each example to mean 0 and variance 1."""
def interpolate(
    input: AnyTensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize a grid over the same area, by the elements near each position."""
def kl_div(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return target * (log(target) - input); `input` has logarithms of probabilities."""
def l1_loss(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: AnyTensor | None = None,
) -> Tensor:
    """Return the absolute differences."""
def layer_norm(
    input: AnyTensor,
    normalized_shape: int | Sequence[int],
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise over the last axes to mean 0 and variance 1, times `weight`, plus `bias`."""
def leaky_relu(input: AnyTensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else `negative_slope` times it."""
def linear(input: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None) -> Tensor:
    """Return `input @ weight.T + bias`."""
def local_response_norm(
    input: AnyTensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * the mean square of `size` channels around each)**beta."""
def log_softmax(
    input: AnyTensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return the logarithm of `softmax`, without overflow."""
def logsigmoid(input: AnyTensor) -> Tensor:
    """Return log(sigmoid(x)), without overflow."""
def lp_pool1d(
    input: AnyTensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the root of the sum of powers of each window of signals, both of `norm_type`."""
def lp_pool2d(
    input: AnyTensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of each window of images; see `lp_pool1d`."""
def lp_pool3d(
    input: AnyTensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of each window of volumes; see `lp_pool1d`."""
def lstm_cell(
    input: AnyTensor,
    hx: tuple[AnyTensor, AnyTensor],
    w_ih: AnyTensor,
    w_hh: AnyTensor,
    b_ih: AnyTensor | None = None,
    b_hh: AnyTensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the hidden state and the cell state after a step of an LSTM."""
def margin_ranking_loss(
    input1: AnyTensor,
    input2: AnyTensor,
    target: AnyTensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)): 1 ranks the first higher, -1 the
    second."""
def max_pool1d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of signals."""
def max_pool2d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of images; see `max_pool1d`."""
def max_pool3d(
    input: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaxPoolResultPooling:
    """Return the largest element of each window of volumes; see `max_pool1d`."""
def max_unpool1d(
    input: AnyTensor,
    indices: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return signals of zeros with window maxima at the positions that `max_pool1d`
    returned."""
def max_unpool2d(
    input: AnyTensor,
    indices: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return images of zeros with window maxima at their positions; see `max_unpool1d`."""
def max_unpool3d(
    input: AnyTensor,
    indices: AnyTensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return volumes of zeros with window maxima at their positions; see `max_unpool1d`."""
def mish(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return x * tanh(softplus(x)), computed with one exponential."""
def mse_loss(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: AnyTensor | None = None,
) -> Tensor:
    """Return the squared differences."""
def multi_head_attention_forward(
    query: AnyTensor,
    key: AnyTensor,
    value: AnyTensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: AnyTensor | None,
    in_proj_bias: AnyTensor | None,
    bias_k: AnyTensor | None,
    bias_v: AnyTensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: AnyTensor,
    out_proj_bias: AnyTensor | None,
    training: bool = True,
    key_padding_mask: AnyTensor | None = None,
    need_weights: bool = True,
    attn_mask: AnyTensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: AnyTensor | None = None,
    k_proj_weight: AnyTensor | None = None,
    v_proj_weight: AnyTensor | None = None,
    static_k: AnyTensor | None = None,
    static_v: AnyTensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the output of multi-head attention, and its weights if they are needed."""
def multi_margin_loss(
    input: AnyTensor,
    target: AnyTensor,
    p: int = 1,
    margin: float = 1.0,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over other classes of max(0, margin - x[class] + x[other])**p."""
def multilabel_margin_loss(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the sum of max(0, 1 - x[class] + x[other]), divided by the number of classes."""
def multilabel_soft_margin_loss(
    input: AnyTensor,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of `binary_cross_entropy_with_logits`."""
def nll_loss(
    input: AnyTensor,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the entry at the class of each; `input` has logarithms of
    probabilities."""
def normalize(
    input: AnyTensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: AnyTensor | None = None
) -> Tensor:
    """Return the input divided by its p-norm along an axis, or by `eps` if that is
    greater."""
def one_hot(tensor: AnyTensor, num_classes: int = -1) -> Tensor:
    """Return 1 at the class of each element along a new last axis, 0 elsewhere."""
def pad(
    input: AnyTensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Return a tensor with elements added or removed at its ends."""
@overload
def pairwise_distance(
    x1: AnyTensor, x2: AnyTensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last axis."""
@overload
def pairwise_distance(
    input: AnyTensor, other: AnyTensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor: ...
def pixel_shuffle(input: AnyTensor, upscale_factor: int) -> Tensor:
    """Return images larger by a factor r, with each r * r channels moved to a square."""
def pixel_unshuffle(input: AnyTensor, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor and with more channels: invert `pixel_shuffle`."""
def poisson_nll_loss(
    input: AnyTensor,
    target: AnyTensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability of `target` under Poisson distributions."""
def prelu(input: AnyTensor, weight: AnyTensor) -> Tensor:
    """Return the input where it is positive, else `weight` times it."""
def relu(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return the input where it is positive, else 0."""
def relu6(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return the input, clipped to 0 and 6."""
def rms_norm(
    input: AnyTensor,
    normalized_shape: int | Sequence[int],
    weight: AnyTensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide the input by the root of its mean square over its last axes, times `weight`."""
def rnn_relu_cell(
    input: AnyTensor,
    hx: AnyTensor,
    w_ih: AnyTensor,
    w_hh: AnyTensor,
    b_ih: AnyTensor | None = None,
    b_hh: AnyTensor | None = None,
) -> Tensor:
    """Return the hidden state after a step: relu of the sum of both products and biases."""
def rnn_tanh_cell(
    input: AnyTensor,
    hx: AnyTensor,
    w_ih: AnyTensor,
    w_hh: AnyTensor,
    b_ih: AnyTensor | None = None,
    b_hh: AnyTensor | None = None,
) -> Tensor:
    """Return the hidden state after a step: tanh of the sum of both products and biases."""
def rrelu(
    input: AnyTensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return `leaky_relu` with a random slope per element in training, else with the mean
    slope."""
def scaled_dot_product_attention(
    query: AnyTensor,
    key: AnyTensor,
    value: AnyTensor,
    attn_mask: AnyTensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return values weighted for each query by the softmax of its products with the keys."""
def selu(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return scaled `elu`, with constants for which layers keep mean 0 and variance 1."""
def sigmoid(input: AnyTensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
def silu(input: AnyTensor, inplace: bool = False) -> Tensor:
    """Return x * sigmoid(x)."""
def smooth_l1_loss(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return d**2 / (2 beta) for differences d below `beta`, else |d| - beta / 2."""
def soft_margin_loss(
    input: AnyTensor,
    target: AnyTensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return log(1 + exp(-target * input)), for targets 1 or -1."""
def softmax(
    input: AnyTensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return exp(x) divided by its sum along an axis."""
def softmin(
    input: AnyTensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None
) -> Tensor:
    """Return `softmax` of -x."""
def softplus(input: AnyTensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta; x where beta * x is above `threshold`."""
def softshrink(input: AnyTensor, lambd: float = 0.5) -> Tensor:
    """Return the input, moved towards 0 by `lambd`, but not beyond."""
def softsign(input: AnyTensor) -> Tensor:
    """Return x / (1 + |x|)."""
def tanh(input: AnyTensor) -> Tensor:
    """Return the hyperbolic tangent."""
def tanhshrink(input: AnyTensor) -> Tensor:
    """Return x - tanh(x)."""
def threshold(input: AnyTensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the input where it is above `threshold`, else `value`."""
def triplet_margin_loss(
    anchor: AnyTensor,
    positive: AnyTensor,
    negative: AnyTensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + |anchor - positive| - |anchor - negative|), by
    `pairwise_distance`."""
def triplet_margin_with_distance_loss(
    anchor: AnyTensor,
    positive: AnyTensor,
    negative: AnyTensor,
    *,
    distance_function: Callable[[AnyTensor, AnyTensor], AnyTensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` with another distance than `pairwise_distance`."""
def unfold(
    input: AnyTensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Return the patches of images as columns; see `dt.unfold`."""
def upsample(
    input: AnyTensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize a grid over the same area: the older name of `interpolate`."""
def __getattr__(name: str) -> Any: ...
