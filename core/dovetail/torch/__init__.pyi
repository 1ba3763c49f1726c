# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch`.
# fmt: off
# isort: off

import builtins
from dovetail.dtypes import DType
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import amp as amp
from . import autograd as autograd
from . import backends as backends
from . import cuda as cuda
from . import distributions as distributions
from . import fft as fft
from . import func as func
from . import linalg as linalg
from . import mps as mps
from . import nn as nn
from . import optim as optim
from . import random as random
from . import special as special
from . import utils as utils
from . import xpu as xpu
from .typed_functions import abs as abs
from .typed_functions import absolute as absolute
from .typed_functions import acos as acos
from .typed_functions import acosh as acosh
from .typed_functions import adaptive_avg_pool1d as adaptive_avg_pool1d
from .typed_functions import adaptive_max_pool1d as adaptive_max_pool1d
from .typed_functions import add as add
from .typed_functions import addbmm as addbmm
from .typed_functions import addcdiv as addcdiv
from .typed_functions import addcmul as addcmul
from .typed_functions import addmm as addmm
from .typed_functions import addmv as addmv
from .typed_functions import addr as addr
from .typed_functions import all as all
from .typed_functions import allclose as allclose
from .typed_functions import alpha_dropout as alpha_dropout
from .typed_functions import amax as amax
from .typed_functions import amin as amin
from .typed_functions import aminmax as aminmax
from .typed_functions import angle as angle
from .typed_functions import any as any
from .typed_functions import arange as arange
from .typed_functions import arccos as arccos
from .typed_functions import arccosh as arccosh
from .typed_functions import arcsin as arcsin
from .typed_functions import arcsinh as arcsinh
from .typed_functions import arctan as arctan
from .typed_functions import arctan2 as arctan2
from .typed_functions import arctanh as arctanh
from .typed_functions import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .typed_functions import argmax as argmax
from .typed_functions import argmin as argmin
from .typed_functions import argsort as argsort
from .typed_functions import argwhere as argwhere
from .typed_functions import as_strided as as_strided
from .typed_functions import as_tensor as as_tensor
from .typed_functions import asarray as asarray
from .typed_functions import asin as asin
from .typed_functions import asinh as asinh
from .typed_functions import atan as atan
from .typed_functions import atan2 as atan2
from .typed_functions import atanh as atanh
from .typed_functions import atleast_1d as atleast_1d
from .typed_functions import atleast_2d as atleast_2d
from .typed_functions import atleast_3d as atleast_3d
from .typed_functions import avg_pool1d as avg_pool1d
from .typed_functions import baddbmm as baddbmm
from .typed_functions import bartlett_window as bartlett_window
from .typed_functions import bernoulli as bernoulli
from .typed_functions import bilinear as bilinear
from .typed_functions import bincount as bincount
from .typed_functions import bitwise_and as bitwise_and
from .typed_functions import bitwise_left_shift as bitwise_left_shift
from .typed_functions import bitwise_not as bitwise_not
from .typed_functions import bitwise_or as bitwise_or
from .typed_functions import bitwise_right_shift as bitwise_right_shift
from .typed_functions import bitwise_xor as bitwise_xor
from .typed_functions import blackman_window as blackman_window
from .typed_functions import block_diag as block_diag
from .typed_functions import bmm as bmm
from .typed_functions import broadcast_shapes as broadcast_shapes
from .typed_functions import broadcast_tensors as broadcast_tensors
from .typed_functions import broadcast_to as broadcast_to
from .typed_functions import bucketize as bucketize
from .typed_functions import can_cast as can_cast
from .typed_functions import cartesian_prod as cartesian_prod
from .typed_functions import cat as cat
from .typed_functions import cdist as cdist
from .typed_functions import ceil as ceil
from .typed_functions import celu as celu
from .typed_functions import chain_matmul as chain_matmul
from .typed_functions import channel_shuffle as channel_shuffle
from .typed_functions import cholesky as cholesky
from .typed_functions import cholesky_solve as cholesky_solve
from .typed_functions import chunk as chunk
from .typed_functions import clamp as clamp
from .typed_functions import clamp_max as clamp_max
from .typed_functions import clamp_min as clamp_min
from .typed_functions import clip as clip
from .typed_functions import clone as clone
from .typed_functions import column_stack as column_stack
from .typed_functions import combinations as combinations
from .typed_functions import compile as compile
from .typed_functions import concat as concat
from .typed_functions import concatenate as concatenate
from .typed_functions import conj as conj
from .typed_functions import conj_physical as conj_physical
from .typed_functions import conv1d as conv1d
from .typed_functions import conv2d as conv2d
from .typed_functions import conv3d as conv3d
from .typed_functions import conv_transpose1d as conv_transpose1d
from .typed_functions import conv_transpose2d as conv_transpose2d
from .typed_functions import conv_transpose3d as conv_transpose3d
from .typed_functions import copysign as copysign
from .typed_functions import corrcoef as corrcoef
from .typed_functions import cos as cos
from .typed_functions import cosh as cosh
from .typed_functions import cosine_similarity as cosine_similarity
from .typed_functions import count_nonzero as count_nonzero
from .typed_functions import cov as cov
from .typed_functions import cross as cross
from .typed_functions import cummax as cummax
from .typed_functions import cummin as cummin
from .typed_functions import cumprod as cumprod
from .typed_functions import cumsum as cumsum
from .typed_functions import deg2rad as deg2rad
from .typed_functions import det as det
from .typed_functions import detach as detach
from .typed_functions import diag as diag
from .typed_functions import diag_embed as diag_embed
from .typed_functions import diagflat as diagflat
from .typed_functions import diagonal as diagonal
from .typed_functions import diff as diff
from .typed_functions import digamma as digamma
from .typed_functions import dist as dist
from .typed_functions import div as div
from .typed_functions import divide as divide
from .typed_functions import dot as dot
from .typed_functions import dropout as dropout
from .typed_functions import dsplit as dsplit
from .typed_functions import dstack as dstack
from .typed_functions import einsum as einsum
from .typed_functions import empty as empty
from .typed_functions import empty_like as empty_like
from .typed_functions import eq as eq
from .typed_functions import equal as equal
from .typed_functions import erf as erf
from .typed_functions import erfc as erfc
from .typed_functions import erfinv as erfinv
from .typed_functions import exp as exp
from .typed_functions import exp2 as exp2
from .typed_functions import expm1 as expm1
from .typed_functions import eye as eye
from .typed_functions import feature_alpha_dropout as feature_alpha_dropout
from .typed_functions import finfo as finfo
from .typed_functions import fix as fix
from .typed_functions import flatten as flatten
from .typed_functions import flip as flip
from .typed_functions import fliplr as fliplr
from .typed_functions import flipud as flipud
from .typed_functions import float_power as float_power
from .typed_functions import floor as floor
from .typed_functions import floor_divide as floor_divide
from .typed_functions import fmax as fmax
from .typed_functions import fmin as fmin
from .typed_functions import fmod as fmod
from .typed_functions import frac as frac
from .typed_functions import frexp as frexp
from .typed_functions import from_dlpack as from_dlpack
from .typed_functions import from_numpy as from_numpy
from .typed_functions import full as full
from .typed_functions import full_like as full_like
from .typed_functions import gather as gather
from .typed_functions import gcd as gcd
from .typed_functions import ge as ge
from .typed_functions import ger as ger
from .typed_functions import get_autocast_dtype as get_autocast_dtype
from .typed_functions import get_default_device as get_default_device
from .typed_functions import get_default_dtype as get_default_dtype
from .typed_functions import get_float32_matmul_precision as get_float32_matmul_precision
from .typed_functions import get_num_threads as get_num_threads
from .typed_functions import get_rng_state as get_rng_state
from .typed_functions import gradient as gradient
from .typed_functions import greater as greater
from .typed_functions import greater_equal as greater_equal
from .typed_functions import group_norm as group_norm
from .typed_functions import gt as gt
from .typed_functions import hamming_window as hamming_window
from .typed_functions import hann_window as hann_window
from .typed_functions import hardshrink as hardshrink
from .typed_functions import heaviside as heaviside
from .typed_functions import histc as histc
from .typed_functions import hsplit as hsplit
from .typed_functions import hstack as hstack
from .typed_functions import hypot as hypot
from .typed_functions import i0 as i0
from .typed_functions import iinfo as iinfo
from .typed_functions import imag as imag
from .typed_functions import index_add as index_add
from .typed_functions import index_copy as index_copy
from .typed_functions import index_fill as index_fill
from .typed_functions import index_put as index_put
from .typed_functions import index_reduce as index_reduce
from .typed_functions import index_select as index_select
from .typed_functions import initial_seed as initial_seed
from .typed_functions import inner as inner
from .typed_functions import inverse as inverse
from .typed_functions import is_autocast_enabled as is_autocast_enabled
from .typed_functions import is_complex as is_complex
from .typed_functions import is_floating_point as is_floating_point
from .typed_functions import is_grad_enabled as is_grad_enabled
from .typed_functions import is_inference_mode_enabled as is_inference_mode_enabled
from .typed_functions import is_nonzero as is_nonzero
from .typed_functions import is_tensor as is_tensor
from .typed_functions import isclose as isclose
from .typed_functions import isfinite as isfinite
from .typed_functions import isin as isin
from .typed_functions import isinf as isinf
from .typed_functions import isnan as isnan
from .typed_functions import isneginf as isneginf
from .typed_functions import isposinf as isposinf
from .typed_functions import isreal as isreal
from .typed_functions import istft as istft
from .typed_functions import kaiser_window as kaiser_window
from .typed_functions import kron as kron
from .typed_functions import kthvalue as kthvalue
from .typed_functions import layer_norm as layer_norm
from .typed_functions import lcm as lcm
from .typed_functions import ldexp as ldexp
from .typed_functions import le as le
from .typed_functions import lerp as lerp
from .typed_functions import less as less
from .typed_functions import less_equal as less_equal
from .typed_functions import lgamma as lgamma
from .typed_functions import linspace as linspace
from .typed_functions import load as load
from .typed_functions import log as log
from .typed_functions import log10 as log10
from .typed_functions import log1p as log1p
from .typed_functions import log2 as log2
from .typed_functions import log_softmax as log_softmax
from .typed_functions import logaddexp as logaddexp
from .typed_functions import logaddexp2 as logaddexp2
from .typed_functions import logcumsumexp as logcumsumexp
from .typed_functions import logdet as logdet
from .typed_functions import logical_and as logical_and
from .typed_functions import logical_not as logical_not
from .typed_functions import logical_or as logical_or
from .typed_functions import logical_xor as logical_xor
from .typed_functions import logit as logit
from .typed_functions import logspace as logspace
from .typed_functions import logsumexp as logsumexp
from .typed_functions import lt as lt
from .typed_functions import lu_solve as lu_solve
from .typed_functions import manual_seed as manual_seed
from .typed_functions import masked_fill as masked_fill
from .typed_functions import masked_scatter as masked_scatter
from .typed_functions import masked_select as masked_select
from .typed_functions import matmul as matmul
from .typed_functions import matrix_exp as matrix_exp
from .typed_functions import matrix_power as matrix_power
from .typed_functions import max as max
from .typed_functions import max_pool1d as max_pool1d
from .typed_functions import max_pool2d as max_pool2d
from .typed_functions import max_pool3d as max_pool3d
from .typed_functions import maximum as maximum
from .typed_functions import mean as mean
from .typed_functions import median as median
from .typed_functions import meshgrid as meshgrid
from .typed_functions import min as min
from .typed_functions import minimum as minimum
from .typed_functions import mm as mm
from .typed_functions import mode as mode
from .typed_functions import moveaxis as moveaxis
from .typed_functions import movedim as movedim
from .typed_functions import msort as msort
from .typed_functions import mul as mul
from .typed_functions import multinomial as multinomial
from .typed_functions import multiply as multiply
from .typed_functions import mv as mv
from .typed_functions import nan_to_num as nan_to_num
from .typed_functions import nanmean as nanmean
from .typed_functions import nanmedian as nanmedian
from .typed_functions import nanquantile as nanquantile
from .typed_functions import nansum as nansum
from .typed_functions import narrow as narrow
from .typed_functions import ne as ne
from .typed_functions import neg as neg
from .typed_functions import negative as negative
from .typed_functions import nextafter as nextafter
from .typed_functions import nonzero as nonzero
from .typed_functions import norm as norm
from .typed_functions import normal as normal
from .typed_functions import not_equal as not_equal
from .typed_functions import numel as numel
from .typed_functions import ones as ones
from .typed_functions import ones_like as ones_like
from .typed_functions import outer as outer
from .typed_functions import pairwise_distance as pairwise_distance
from .typed_functions import permute as permute
from .typed_functions import pinverse as pinverse
from .typed_functions import pixel_shuffle as pixel_shuffle
from .typed_functions import pixel_unshuffle as pixel_unshuffle
from .typed_functions import poisson as poisson
from .typed_functions import polar as polar
from .typed_functions import polygamma as polygamma
from .typed_functions import positive as positive
from .typed_functions import pow as pow
from .typed_functions import prelu as prelu
from .typed_functions import prod as prod
from .typed_functions import promote_types as promote_types
from .typed_functions import qr as qr
from .typed_functions import quantile as quantile
from .typed_functions import rad2deg as rad2deg
from .typed_functions import rand as rand
from .typed_functions import rand_like as rand_like
from .typed_functions import randint as randint
from .typed_functions import randint_like as randint_like
from .typed_functions import randn as randn
from .typed_functions import randn_like as randn_like
from .typed_functions import randperm as randperm
from .typed_functions import range as range
from .typed_functions import ravel as ravel
from .typed_functions import real as real
from .typed_functions import reciprocal as reciprocal
from .typed_functions import relu as relu
from .typed_functions import remainder as remainder
from .typed_functions import renorm as renorm
from .typed_functions import repeat as repeat
from .typed_functions import repeat_interleave as repeat_interleave
from .typed_functions import reshape as reshape
from .typed_functions import result_type as result_type
from .typed_functions import rms_norm as rms_norm
from .typed_functions import roll as roll
from .typed_functions import rot90 as rot90
from .typed_functions import round as round
from .typed_functions import row_stack as row_stack
from .typed_functions import rrelu as rrelu
from .typed_functions import rsqrt as rsqrt
from .typed_functions import rsub as rsub
from .typed_functions import save as save
from .typed_functions import scalar_tensor as scalar_tensor
from .typed_functions import scatter as scatter
from .typed_functions import scatter_add as scatter_add
from .typed_functions import scatter_reduce as scatter_reduce
from .typed_functions import searchsorted as searchsorted
from .typed_functions import seed as seed
from .typed_functions import select as select
from .typed_functions import selu as selu
from .typed_functions import set_default_device as set_default_device
from .typed_functions import set_default_dtype as set_default_dtype
from .typed_functions import set_float32_matmul_precision as set_float32_matmul_precision
from .typed_functions import set_num_threads as set_num_threads
from .typed_functions import set_printoptions as set_printoptions
from .typed_functions import set_rng_state as set_rng_state
from .typed_functions import sgn as sgn
from .typed_functions import sigmoid as sigmoid
from .typed_functions import sign as sign
from .typed_functions import signbit as signbit
from .typed_functions import sin as sin
from .typed_functions import sinc as sinc
from .typed_functions import sinh as sinh
from .typed_functions import slogdet as slogdet
from .typed_functions import softmax as softmax
from .typed_functions import sort as sort
from .typed_functions import sparse_bsr_tensor as sparse_bsr_tensor
from .typed_functions import sparse_coo_tensor as sparse_coo_tensor
from .typed_functions import sparse_csc_tensor as sparse_csc_tensor
from .typed_functions import sparse_csr_tensor as sparse_csr_tensor
from .typed_functions import split as split
from .typed_functions import sqrt as sqrt
from .typed_functions import square as square
from .typed_functions import squeeze as squeeze
from .typed_functions import stack as stack
from .typed_functions import std as std
from .typed_functions import std_mean as std_mean
from .typed_functions import stft as stft
from .typed_functions import sub as sub
from .typed_functions import subtract as subtract
from .typed_functions import sum as sum
from .typed_functions import svd as svd
from .typed_functions import swapaxes as swapaxes
from .typed_functions import swapdims as swapdims
from .typed_functions import t as t
from .typed_functions import take as take
from .typed_functions import take_along_dim as take_along_dim
from .typed_functions import tan as tan
from .typed_functions import tanh as tanh
from .typed_functions import tensor as tensor
from .typed_functions import tensor_split as tensor_split
from .typed_functions import tensordot as tensordot
from .typed_functions import threshold as threshold
from .typed_functions import tile as tile
from .typed_functions import topk as topk
from .typed_functions import trace as trace
from .typed_functions import transpose as transpose
from .typed_functions import trapezoid as trapezoid
from .typed_functions import trapz as trapz
from .typed_functions import tril as tril
from .typed_functions import tril_indices as tril_indices
from .typed_functions import triu as triu
from .typed_functions import triu_indices as triu_indices
from .typed_functions import true_divide as true_divide
from .typed_functions import trunc as trunc
from .typed_functions import unbind as unbind
from .typed_functions import unflatten as unflatten
from .typed_functions import unique as unique
from .typed_functions import unique_consecutive as unique_consecutive
from .typed_functions import unravel_index as unravel_index
from .typed_functions import unsqueeze as unsqueeze
from .typed_functions import use_deterministic_algorithms as use_deterministic_algorithms
from .typed_functions import vander as vander
from .typed_functions import var as var
from .typed_functions import var_mean as var_mean
from .typed_functions import vdot as vdot
from .typed_functions import view_as_complex as view_as_complex
from .typed_functions import view_as_real as view_as_real
from .typed_functions import vmap as vmap
from .typed_functions import vsplit as vsplit
from .typed_functions import vstack as vstack
from .typed_functions import where as where
from .typed_functions import xlogy as xlogy
from .typed_functions import zeros as zeros
from .typed_functions import zeros_like as zeros_like
BFloat16Tensor: Any
BoolTensor: Any
ByteTensor: Any
CharTensor: Any
DoubleTensor: Any
from dovetail import Event as Event
FloatTensor: Any
from dovetail.torch.training import Generator as Generator
GradScaler: Any
HalfTensor: Any
IntTensor: Any
LongTensor: Any
from dovetail import OutOfMemoryError as OutOfMemoryError
ShortTensor: Any
from dovetail.torch.creation import Size as Size
from dovetail import Stream as Stream
from dovetail.torch.adoption import Tensor as Tensor
from dovetail import autocast as autocast
bfloat16: DType
bool: DType
cdouble: DType
cfloat: DType
channels_last: builtins.str
channels_last_3d: builtins.str
def complex(real: Any, imag: Any) -> Any:
    """Return complex numbers of real and imaginary parts."""
complex128: DType
complex64: DType
contiguous_format: builtins.str
from dovetail.torch.switches import device as device
double: DType
dtype: Any
e: builtins.float
from dovetail import enable_grad as enable_grad
float: DType
float16: DType
float32: DType
float64: DType
half: DType
inf: builtins.float
from dovetail import inference_mode as inference_mode
int: DType
int16: DType
int32: DType
int64: DType
int8: DType
from dovetail import layout as layout
long: DType
memory_format: Any
nan: builtins.float
newaxis: Any
from dovetail import no_grad as no_grad
pi: builtins.float
preserve_format: builtins.str
from dovetail import set_grad_enabled as set_grad_enabled
short: DType
sparse_bsr: Any
sparse_coo: Any
sparse_csc: Any
sparse_csr: Any
strided: Any
uint16: DType
uint32: DType
uint64: DType
uint8: DType
version: Any
def __getattr__(name: str) -> Any: ...
