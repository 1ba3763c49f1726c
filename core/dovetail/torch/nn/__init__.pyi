# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.nn`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.nn.model_summary import ModuleSummary
from dovetail.nn.modules.module import Module
from dovetail.nn.torch_modules import TorchModule
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import functional as functional
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from dovetail.nn import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from dovetail.nn import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from dovetail.nn import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from dovetail.nn import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from dovetail.nn import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from dovetail.nn import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from dovetail.nn import AlphaDropout as AlphaDropout
from dovetail.nn import AvgPool1d as AvgPool1d
from dovetail.nn import AvgPool2d as AvgPool2d
from dovetail.nn import AvgPool3d as AvgPool3d
from dovetail.nn import BCELoss as BCELoss
from dovetail.nn import BCEWithLogitsLoss as BCEWithLogitsLoss
from dovetail.nn import BatchNorm1d as BatchNorm1d
from dovetail.nn import BatchNorm2d as BatchNorm2d
from dovetail.nn import BatchNorm3d as BatchNorm3d
from dovetail.nn import Bilinear as Bilinear
from dovetail.torch.training import Buffer as Buffer
from dovetail.nn import CELU as CELU
from dovetail.nn import CTCLoss as CTCLoss
from dovetail.nn import ChannelShuffle as ChannelShuffle
from dovetail.nn import CircularPad1d as CircularPad1d
from dovetail.nn import CircularPad2d as CircularPad2d
from dovetail.nn import CircularPad3d as CircularPad3d
from dovetail.nn import ConstantPad1d as ConstantPad1d
from dovetail.nn import ConstantPad2d as ConstantPad2d
from dovetail.nn import ConstantPad3d as ConstantPad3d
from dovetail.nn import Conv1d as Conv1d
from dovetail.nn import Conv2d as Conv2d
from dovetail.nn import Conv3d as Conv3d
from dovetail.nn import ConvTranspose1d as ConvTranspose1d
from dovetail.nn import ConvTranspose2d as ConvTranspose2d
from dovetail.nn import ConvTranspose3d as ConvTranspose3d
from dovetail.nn import CosineEmbeddingLoss as CosineEmbeddingLoss
from dovetail.nn import CosineSimilarity as CosineSimilarity
from dovetail.nn import CrossEntropyLoss as CrossEntropyLoss
from dovetail.nn import Dropout as Dropout
from dovetail.nn import Dropout1d as Dropout1d
from dovetail.nn import Dropout2d as Dropout2d
from dovetail.nn import Dropout3d as Dropout3d
from dovetail.nn import ELU as ELU
from dovetail.nn import Embedding as Embedding
from dovetail.nn import EmbeddingBag as EmbeddingBag
from dovetail.nn import FeatureAlphaDropout as FeatureAlphaDropout
from dovetail.nn import Flatten as Flatten
from dovetail.nn import Fold as Fold
from dovetail.nn import GELU as GELU
from dovetail.nn import GLU as GLU
from dovetail.nn import GRU as GRU
from dovetail.nn import GRUCell as GRUCell
from dovetail.nn import GaussianNLLLoss as GaussianNLLLoss
from dovetail.nn import GroupNorm as GroupNorm
from dovetail.nn import Hardshrink as Hardshrink
from dovetail.nn import Hardsigmoid as Hardsigmoid
from dovetail.nn import Hardswish as Hardswish
from dovetail.nn import Hardtanh as Hardtanh
from dovetail.nn import HingeEmbeddingLoss as HingeEmbeddingLoss
from dovetail.nn import HuberLoss as HuberLoss
from dovetail.nn import Identity as Identity
from dovetail.nn import InstanceNorm1d as InstanceNorm1d
from dovetail.nn import InstanceNorm2d as InstanceNorm2d
from dovetail.nn import InstanceNorm3d as InstanceNorm3d
from dovetail.nn import KLDivLoss as KLDivLoss
from dovetail.nn import L1Loss as L1Loss
from dovetail.nn import LPPool1d as LPPool1d
from dovetail.nn import LPPool2d as LPPool2d
from dovetail.nn import LPPool3d as LPPool3d
from dovetail.nn import LSTM as LSTM
from dovetail.nn import LSTMCell as LSTMCell
from dovetail.nn import LayerNorm as LayerNorm
from dovetail.nn import LeakyReLU as LeakyReLU
from dovetail.nn import Linear as Linear
from dovetail.nn import LocalResponseNorm as LocalResponseNorm
from dovetail.nn import LogSigmoid as LogSigmoid
from dovetail.nn import LogSoftmax as LogSoftmax
from dovetail.nn import MSELoss as MSELoss
from dovetail.nn import MarginRankingLoss as MarginRankingLoss
from dovetail.nn import MaxPool1d as MaxPool1d
from dovetail.nn import MaxPool2d as MaxPool2d
from dovetail.nn import MaxPool3d as MaxPool3d
from dovetail.nn import MaxUnpool1d as MaxUnpool1d
from dovetail.nn import MaxUnpool2d as MaxUnpool2d
from dovetail.nn import MaxUnpool3d as MaxUnpool3d
from dovetail.nn import Mish as Mish
from dovetail.nn import Module as Module
from dovetail.nn import ModuleDict as ModuleDict
from dovetail.nn import ModuleList as ModuleList
from dovetail.nn import MultiLabelMarginLoss as MultiLabelMarginLoss
from dovetail.nn import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from dovetail.nn import MultiMarginLoss as MultiMarginLoss
from dovetail.nn import MultiheadAttention as MultiheadAttention
from dovetail.nn import NLLLoss as NLLLoss
from dovetail.nn import PReLU as PReLU
from dovetail.nn import PairwiseDistance as PairwiseDistance
from dovetail.torch.training import Parameter as Parameter
from dovetail.nn import ParameterDict as ParameterDict
from dovetail.nn import ParameterList as ParameterList
from dovetail.nn import PixelShuffle as PixelShuffle
from dovetail.nn import PixelUnshuffle as PixelUnshuffle
from dovetail.nn import PoissonNLLLoss as PoissonNLLLoss
from dovetail.nn import RMSNorm as RMSNorm
from dovetail.nn import RNN as RNN
from dovetail.nn import RNNBase as RNNBase
from dovetail.nn import RNNCell as RNNCell
from dovetail.nn import RNNCellBase as RNNCellBase
from dovetail.nn import RReLU as RReLU
from dovetail.nn import ReLU as ReLU
from dovetail.nn import ReLU6 as ReLU6
from dovetail.nn import ReflectionPad1d as ReflectionPad1d
from dovetail.nn import ReflectionPad2d as ReflectionPad2d
from dovetail.nn import ReflectionPad3d as ReflectionPad3d
from dovetail.nn import ReplicationPad1d as ReplicationPad1d
from dovetail.nn import ReplicationPad2d as ReplicationPad2d
from dovetail.nn import ReplicationPad3d as ReplicationPad3d
from dovetail.nn import SELU as SELU
from dovetail.nn import Sequential as Sequential
from dovetail.nn import SiLU as SiLU
from dovetail.nn import Sigmoid as Sigmoid
from dovetail.nn import SmoothL1Loss as SmoothL1Loss
from dovetail.nn import SoftMarginLoss as SoftMarginLoss
from dovetail.nn import Softmax as Softmax
from dovetail.nn import Softmax2d as Softmax2d
from dovetail.nn import Softmin as Softmin
from dovetail.nn import Softplus as Softplus
from dovetail.nn import Softshrink as Softshrink
from dovetail.nn import Softsign as Softsign
from dovetail.nn import Tanh as Tanh
from dovetail.nn import Tanhshrink as Tanhshrink
from dovetail.nn import Threshold as Threshold
from dovetail.nn import Transformer as Transformer
from dovetail.nn import TransformerDecoder as TransformerDecoder
from dovetail.nn import TransformerDecoderLayer as TransformerDecoderLayer
from dovetail.nn import TransformerEncoder as TransformerEncoder
from dovetail.nn import TransformerEncoderLayer as TransformerEncoderLayer
from dovetail.nn import TripletMarginLoss as TripletMarginLoss
from dovetail.nn import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from dovetail.nn import Unflatten as Unflatten
from dovetail.nn import Unfold as Unfold
from dovetail.nn import Upsample as Upsample
from dovetail.nn import UpsamplingBilinear2d as UpsamplingBilinear2d
from dovetail.nn import UpsamplingNearest2d as UpsamplingNearest2d
from dovetail.nn import ZeroPad1d as ZeroPad1d
from dovetail.nn import ZeroPad2d as ZeroPad2d
from dovetail.nn import ZeroPad3d as ZeroPad3d
def from_torch(module: TorchModule, *, device: Any = None) -> Module:
    """Return a network of dovetail with the layers and copied weights of a PyTorch module."""
def summary(module: Module, *args: Any, depth: int = 3, **kwargs: Any) -> ModuleSummary:
    """Return a table of a network's modules: results, parameters, FLOPs and bytes."""
def __getattr__(name: str) -> Any: ...
