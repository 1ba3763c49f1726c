"""What others' names for networks are here, for the error of who asks for them.

`refused` makes the `__getattr__` of a package: it is asked for what is not there, so it costs
nothing where all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import ModuleType
from typing import NoReturn

import dovetail as dt
from dovetail.extend import arguments

_LOOPS = "a subclass of dt.distributions.Distribution"
_WEIGHTS = "nothing; write the weight as a function of parameters, in forward"
_DIMENSIONS = ("1d", "2d", "3d")
_KINDS = ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
_LAZY = ("Linear", *(f"{kind}{d}" for kind in _KINDS for d in _DIMENSIONS))
_IN_PLACE = ["celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu"]
_INITIALISERS = (
    *("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal"),
    *("ones", "sparse", "trunc_normal", "uniform", "xavier_normal", "xavier_uniform", "zeros"),
)


def _closest(name: str, optimizer: str) -> str:
    return (
        f"dovetail has no {name} optimizer; the closest is {optimizer}, and a rule of your own is "
        "a subclass of dt.optim.Optimizer"
    )


INSTEAD: dict[str, dict[str, str]] = {
    "nn": {
        **{f"Lazy{name}": f"dt.nn.{name}, which is told how many come in" for name in _LAZY},
        "UninitializedParameter": "dt.nn.Parameter of a shape",
        "UninitializedBuffer": "dt.nn.Buffer of a shape",
        "CTCLoss": "a sum over alignments, by dt.scan and dt.logaddexp",
        "AdaptiveLogSoftmaxWithLoss": "dt.nn.CrossEntropyLoss over all classes",
        "NLLLoss2d": "dt.nn.NLLLoss",
        "LinearCrossEntropyLoss": "dt.nn.Linear, and dt.nn.CrossEntropyLoss",
        "LinearCrossEntropyOptions": "dt.nn.Linear, and dt.nn.CrossEntropyLoss",
        "CrossMapLRN2d": "dt.nn.LocalResponseNorm",
        "FractionalMaxPool2d": "dt.nn.AdaptiveMaxPool2d",
        "FractionalMaxPool3d": "dt.nn.AdaptiveMaxPool3d",
        "SyncBatchNorm": "dovetail has no SyncBatchNorm; one process needs dt.nn.BatchNorm2d alone",
        "DataParallel": "dovetail has no nn.DataParallel; a module computes on one device",
        "parallel": "dovetail has no nn.parallel; a module computes on one device",
        "Container": "dt.nn.Module",
        "ParameterTuple": "dt.nn.ParameterList",
        "grad": "dt.grad, dt.func.vjp",
        "quantized": "nothing; net.to(dt.float16) is half as large",
        "qat": "nothing; net.to(dt.float16) is half as large",
        "Dense": "dt.nn.Linear(in, out), and an activation after it",
        "Conv": "dt.nn.Conv2d(in, out, kernel_size)",
        "Embed": "dt.nn.Embedding",
        "BatchNorm": "dt.nn.BatchNorm1d, BatchNorm2d or BatchNorm3d",
        "Model": "dt.nn.Module",
        "Layer": "dt.nn.Module",
        "Swish": "dt.nn.SiLU",
        "MaxPooling2D": "dt.nn.MaxPool2d",
        "AveragePooling2D": "dt.nn.AvgPool2d",
        "compact": "layers made in __init__",
        "logsumexp": "dt.logsumexp",
        "standardize": "dt.nn.functional.layer_norm",
        "swish": "dt.nn.functional.silu",
        "initializers": "dt.nn.init",
        "LayerNormalization": "dt.nn.LayerNorm",
    },
    "nn.functional": {
        **{f"{name}_": f"dt.nn.functional.{name}(x, inplace=True)" for name in _IN_PLACE},
        "threshold_": "dt.nn.functional.threshold(x, threshold, value, inplace=True)",
        "ctc_loss": "a sum over alignments, by dt.scan and dt.logaddexp",
        "linear_cross_entropy": "cross_entropy(linear(x, w), target)",
        "pdist": "dt.linalg.vector_norm(x[:, None] - x, axis=-1)[dt.triu_indices(len(x), 1)]",
        "cdist": "dt.linalg.vector_norm(x[:, None] - y, axis=-1)",
        "upsample_nearest": 'interpolate(x, mode="nearest")',
        "upsample_bilinear": 'interpolate(x, mode="bilinear", align_corners=True)',
        "conv_tbc": "conv1d of x.permute_dims(1, 2, 0)",
        "fractional_max_pool2d": "adaptive_max_pool2d",
        "fractional_max_pool3d": "adaptive_max_pool3d",
        "grouped_mm": "x @ y, of a batch",
        "scaled_mm": "x @ y * scale",
        "grad": "dt.grad, dt.func.vjp",
        **{
            f"{name}_with_indices": f"{name}(..., return_indices=True)"
            for kind in ("max_pool", "adaptive_max_pool")
            for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")
        },
        "swish": "dt.nn.functional.silu",
        "hard_sigmoid": "dt.nn.functional.hardsigmoid",
        "softmax_cross_entropy": "dt.nn.functional.cross_entropy",
        "log_sigmoid": "dt.nn.functional.logsigmoid",
        "attention": "dt.nn.functional.scaled_dot_product_attention",
        "dot_product_attention": "dt.nn.functional.scaled_dot_product_attention",
        "hard_silu": "dt.nn.functional.hardswish",
        "log1mexp": "dt.log(-dt.expm1(-x))",
        "logmeanexp": "dt.logsumexp(x, axis) - math.log(n)",
        "squareplus": "(x + dt.sqrt(x * x + 4)) / 2",
        "sparse_plus": "dt.where(x < 1, (dt.clip(x, -1, 1) + 1) ** 2 / 4, x)",
        "sparse_sigmoid": "dt.clip((x + 1) / 2, 0, 1)",
        "standardize": "dt.nn.functional.layer_norm(x, x.shape[-1:])",
        "initializers": "dt.nn.init",
    },
    "nn.init": {
        **{name: f"dt.nn.init.{name}_, in place" for name in _INITIALISERS},
        "glorot_uniform": "dt.nn.init.xavier_uniform_",
        "glorot_normal": "dt.nn.init.xavier_normal_",
        "he_normal": "dt.nn.init.kaiming_normal_",
        "he_uniform": "dt.nn.init.kaiming_uniform_",
        "lecun_normal": 'dt.nn.init.kaiming_normal_(w, nonlinearity="linear")',
        "truncated_normal": "dt.nn.init.trunc_normal_",
    },
    "nn.utils": {
        "clip_grad_norm": "dt.nn.utils.clip_grad_norm_",
        "clip_grad": "dt.nn.utils.clip_grad_norm_, clip_grad_value_",
        "weight_norm": _WEIGHTS,
        "spectral_norm": _WEIGHTS,
        "remove_weight_norm": _WEIGHTS,
        "remove_spectral_norm": _WEIGHTS,
        "parametrize": _WEIGHTS,
        "parametrizations": _WEIGHTS,
        "prune": "with dt.no_grad(): net.weight *= mask",
        "skip_init": "the module itself; weights are drawn when somebody looks",
        "stateless": "dt.nn.utils.functional_call",
        "fuse_conv_bn_eval": "nothing: what is after a convolution shares its kernel",
        "fusion": "nothing: what is after a convolution shares its kernel",
        "parameters_to_vec": "dt.nn.utils.parameters_to_vector",
    },
    "optim": {
        "Adafactor": _closest("Adafactor", "dt.optim.Adam(params, lr)"),
        "Muon": _closest("Muon", "dt.optim.SGD(params, lr, momentum=0.95, nesterov=True)"),
        "Lion": _closest("Lion", "dt.optim.AdamW(params, lr)"),
        "Lamb": _closest("Lamb", "dt.optim.AdamW(params, lr)"),
        "swa_utils": "a mean of weights, as float32: with dt.no_grad(): mean += (w - mean) / n",
        "adamw": "dt.optim.AdamW(net.parameters())",
        "rmsprop": "dt.optim.RMSprop(net.parameters())",
        "GradientTransformation": "a subclass of dt.optim.Optimizer",
        "apply_updates": "optimizer.step()",
        "chain": "dt.nn.utils.clip_grad_norm_ before optimizer.step()",
        "clip_by_global_norm": "dt.nn.utils.clip_grad_norm_",
        "cosine_decay_schedule": "dt.optim.lr_scheduler.CosineAnnealingLR",
        "exponential_decay": "dt.optim.lr_scheduler.ExponentialLR",
        "Momentum": "dt.optim.SGD(params, lr, momentum=0.9)",
    },
    "optim.lr_scheduler": {
        "_LRScheduler": "dt.optim.lr_scheduler.LRScheduler",
        "CosineDecay": "dt.optim.lr_scheduler.CosineAnnealingLR",
        "ExponentialDecay": "dt.optim.lr_scheduler.ExponentialLR",
        "WarmupLR": "dt.optim.lr_scheduler.LinearLR, and SequentialLR",
        "get_linear_schedule_with_warmup": "dt.optim.lr_scheduler.LinearLR, and SequentialLR",
    },
    "data": {
        "DistributedSampler": "dt.data.Subset for each process",
        "distributed": "dt.data.Subset for each process",
        "default_convert": "dt.asarray",
        "dataloader": "dt.data.DataLoader",
        "dataset": "dt.data.Dataset",
        "sampler": "dt.data.Sampler",
        "IterDataPipe": "dt.data.IterableDataset",
        "MapDataPipe": "dt.data.Dataset",
        "datapipes": "dt.data.IterableDataset",
        "train_test_split": "dt.data.random_split",
        "from_tensor_slices": "dt.data.TensorDataset",
        "tqdm": "dt.data.Track(loader)",
    },
    "distributions": {
        "ContinuousBernoulli": _LOOPS,
        "GeneralizedPareto": _LOOPS,
        "Kumaraswamy": "dt.distributions.TransformedDistribution of a Uniform",
        "LKJCholesky": _LOOPS,
        "LogisticNormal": "TransformedDistribution(Normal(...), StickBreakingTransform())",
        "LowRankMultivariateNormal": "MultivariateNormal(m, covariance_matrix=w @ w.mT + diagonal)",
        "RelaxedBernoulli": "dt.nn.functional.gumbel_softmax",
        "RelaxedOneHotCategorical": "dt.nn.functional.gumbel_softmax",
        "VonMises": _LOOPS,
        "Wishart": _LOOPS,
        "Gaussian": "dt.distributions.Normal",
        "utils": "dt.nn.functional.one_hot, dt.sigmoid, dt.logit",
        "log_normal": "dt.distributions.LogNormal",
    },
    "checkpoint": {
        "checkpoint": "dt.autograd.checkpoint",
        "checkpoint_sequential": "dt.autograd.checkpoint of each part",
        "save_checkpoint": "dt.checkpoint.save",
        "load_checkpoint": "dt.checkpoint.load",
        "restore": "dt.checkpoint.load",
    },
    "onnx": {
        "dynamo_export": "dt.onnx.export",
        "save": "dt.onnx.export",
        "load_model": "dt.onnx.load",
        "checker": "onnx.checker, of the library onnx",
        "InferenceSession": "dt.onnx.load(file), which is called",
    },
    "tensorboard": {"FileWriter": "dt.tensorboard.SummaryWriter", "writer": "SummaryWriter"},
}
MODULE = {  # what others' layers have as methods
    "share_memory": "a pickle, which multiprocessing sends",
    "compile": "dt.jit of the function that calls it",
    "xpu": 'net.to("xpu")',
    "ipu": 'net.to("ipu")',
    "mps": 'net.to("mps")',
    "register_backward_hook": "net.register_full_backward_hook",
    "fit": "a loop: loss.backward(), optimizer.step(); see docs/training.md",
    "predict": "net(x), within dt.no_grad()",
    "evaluate": "net(x), within dt.no_grad()",
    "summary": "print(net), dt.tensorboard.SummaryWriter.add_graph",
    "init": "net itself: it has its parameters",
    "weights": "net.parameters(), net.state_dict()",
    "trainable_variables": "net.parameters()",
    "variables": "net.state_dict()",
    "params": "net.parameters(), net.state_dict()",
    "device": "next(net.parameters()).device",
    "dtype": "next(net.parameters()).dtype",
    "save": "dt.checkpoint.save(file, model=net)",
    "save_weights": "dt.save(file, net.state_dict())",
    "load_weights": "net.load_state_dict(dt.load(file))",
    "freeze": "net.requires_grad_(False)",
    "kernel": "net.weight",
    "W": "net.weight",
    "w": "net.weight",
    "b": "net.bias",
    "get_weights": "net.state_dict()",
    "set_weights": "net.load_state_dict(state)",
    "trainable": "net.requires_grad_(False), p.requires_grad",
    "trainable_weights": "net.parameters()",
    "layers": "net.children()",
    "call": "net(x); what it does is net.forward",
    "build": "nothing: layers have their parameters when they are made",
    "count_params": "sum(p.size for p in net.parameters())",
    "numel": "sum(p.size for p in net.parameters())",
}
OPTIMIZER = {  # what others' optimisers have
    "minimize": "loss.backward(), and optimizer.step()",
    "init": "the optimiser itself: dt.optim.Adam(net.parameters()) keeps its state",
    "update": "loss.backward(), and optimizer.step()",
    "apply": "optimizer.step()",
    "apply_gradients": "optimizer.step(), which reads p.grad",
    "compute_gradients": "loss.backward(), which writes p.grad",
    "get_gradients": "loss.backward(), which writes p.grad",
    "backward": "loss.backward()",
    "clear_grad": "optimizer.zero_grad()",
    "zero_gradients": "optimizer.zero_grad()",
    "lr": 'optimizer.param_groups[0]["lr"]',
    "learning_rate": 'optimizer.param_groups[0]["lr"]',
    "set_lr": 'optimizer.param_groups[0]["lr"] = lr',
    "get_lr": "scheduler.get_last_lr()",
    "params": 'optimizer.param_groups[0]["params"]',
    "parameters": 'optimizer.param_groups[0]["params"]',
    "variables": "optimizer.state, optimizer.state_dict()",
    "get_config": "optimizer.defaults",
    "iterations": "optimizer.state_dict()",
    "clip_grad_norm": "dt.nn.utils.clip_grad_norm_(net.parameters(), limit)",
    "register_state_dict_pre_hook": "a function that calls optimizer.state_dict()",
    "register_state_dict_post_hook": "a function that calls optimizer.state_dict()",
    "register_load_state_dict_pre_hook": "a function that calls optimizer.load_state_dict(state)",
    "register_load_state_dict_post_hook": "a function that calls optimizer.load_state_dict(state)",
}
DISTRIBUTION = {  # what others' distributions have
    "pdf": "d.log_prob(x).exp()",
    "pmf": "d.log_prob(x).exp()",
    "prob": "d.log_prob(x).exp()",
    "logpdf": "d.log_prob(x)",
    "logpmf": "d.log_prob(x)",
    "log_cdf": "d.cdf(x).log()",
    "logcdf": "d.cdf(x).log()",
    "sf": "1 - d.cdf(x)",
    "survival_function": "1 - d.cdf(x)",
    "ppf": "d.icdf(p)",
    "quantile": "d.icdf(p)",
    "median": "d.icdf(0.5)",
    "rvs": "d.sample(shape)",
    "std": "d.stddev",
    "var": "d.variance",
    "kl_divergence": "dt.distributions.kl_divergence(p, q)",
    "kl": "dt.distributions.kl_divergence(p, q)",
    "parameters": "d.loc, d.scale and so on, as they were given",
}
# Where a name may be that was looked for elsewhere.
_PUBLIC = (
    "nn",
    "nn.functional",
    "optim",
    "optim.lr_scheduler",
    "data",
    "distributions",
    "nn.utils",
)
_GENERAL = ("", "linalg", "random", "func", "autograd")


def refused(package: str) -> Callable[[str], NoReturn]:
    """A `__getattr__` for a package of networks. `package`: its name within `dt`."""

    def refuse(name: str) -> NoReturn:
        raise AttributeError(
            f"module 'dovetail.{package}' has no attribute {name!r}{_known(package, name)}"
        )

    return refuse


class Uncalled(ModuleType):
    """A module of optimisers, whose name others have for a function."""

    def __call__(self, *args: object, **options: object) -> NoReturn:
        """Nothing. Raises: ArgumentTypeError, which says what to write."""
        name = self.__name__.rpartition(".")[2]
        names = [n for n in self.__all__ if n.casefold() == name]
        raise dt.ArgumentTypeError(
            f"optim.{name}: it is a module; write dt.optim.{names[0]}(net.parameters(), lr=...)"
        )


def absent(known: Mapping[str, str]) -> Callable[[object, str], NoReturn]:
    """A `__getattr__` for a class. `known`: what to write for names that others' classes have."""

    def __getattr__(self: object, name: str) -> NoReturn:
        more = arguments.told(known[name], name) if name in known else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}")

    return __getattr__


def _known(package: str, name: str) -> str:
    """What to write for a name that a package has not."""
    if name.startswith("__"):
        return ""
    known = INSTEAD[package]
    found = known.get(name) or known.get(name.removesuffix("_")) or _elsewhere(package, name)
    return arguments.told(found, name) if found else ""


def _elsewhere(package: str, name: str) -> str:
    """A public name that is in another package, or that differs in case and underscores alone."""
    places = [(of, names) for of in (package, *_PUBLIC, *_GENERAL) if (names := _names(of))]
    alike = [(of, {_bare(n): n for n in names}) for of, names in places]
    exact = (".".join(["dt", *of.split("."), name]) for of, names in places if name in names)
    close = (
        ".".join(["dt", *of.split("."), bare[_bare(name)]])
        for of, bare in alike
        if _bare(name) in bare
    )
    return next((found.replace("..", ".") for found in (*exact, *close)), "")


def _names(package: str) -> list[str]:
    """The public names of a package of `dt`, or of `dt` itself."""
    place: object = reduce(getattr, package.split(".") if package else (), dt)
    names: list[str] = getattr(place, "__all__", [])
    return names


def _bare(name: str) -> str:
    return name.replace("_", "").casefold()
