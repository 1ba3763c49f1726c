"""Short programs of PyTorch's users. Each returns numbers; `torch` is real or `dovetail.torch`.

They draw no random numbers but from `data`, so that both libraries compute the same.
"""

import copy
import io
import math
import pickle
from collections import OrderedDict
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split


def data(*shape, seed=0, scale=1.0):
    """Return normal numbers that are the same in both libraries."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return torch.from_numpy(values.astype(np.float32))


def fill(module):
    """Set all parameters of a module to numbers of `data`; return the module."""
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(data(*p.shape, seed=k + 1, scale=0.3))
    return module


def mlp(n_in=4, n_hidden=8, n_out=3):
    return fill(nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_out)))


def param_groups():
    net = mlp()
    decay = [p for n, p in net.named_parameters() if n.endswith("weight")]
    rest = [p for n, p in net.named_parameters() if n.endswith("bias")]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "lr": 1e-3}],
        lr=1e-2,
        weight_decay=0.0,
    )
    x, y = data(16, 4), torch.arange(16) % 3
    losses = []
    for step in range(5):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        for g in opt.param_groups:
            g["lr"] *= 0.9
        losses.append(loss.item())
        if step == 2:
            opt.add_param_group({"params": [nn.Parameter(torch.zeros(2))], "lr": 0.5})
    return losses, [g["lr"] for g in opt.param_groups], [len(g["params"]) for g in opt.param_groups]


def schedulers():
    rates = {}
    makers = {
        "step": partial(torch.optim.lr_scheduler.StepLR, step_size=2, gamma=0.5),
        "multi": partial(torch.optim.lr_scheduler.MultiStepLR, milestones=[2, 4]),
        "exp": partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.8),
        "cos": partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=5, eta_min=0.01),
        "warm": partial(torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, T_0=3),
        "lambda": partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda e: 1 / (e + 1)),
        "cycle": partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=1.0, total_steps=10),
        "linear": partial(torch.optim.lr_scheduler.LinearLR, start_factor=0.1, total_iters=4),
    }
    for name, make in makers.items():
        opt = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        scheduler = make(opt)
        rates[name] = []
        for _ in range(6):
            opt.step()
            scheduler.step()
            rates[name].append(scheduler.get_last_lr()[0])
    opt = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    chain = torch.optim.lr_scheduler.SequentialLR(
        opt,
        [
            torch.optim.lr_scheduler.ConstantLR(opt, factor=0.1, total_iters=2),
            torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9),
        ],
        milestones=[2],
    )
    rates["chain"] = []
    for _ in range(5):
        opt.step()
        chain.step()
        rates["chain"].append(opt.param_groups[0]["lr"])
    state = chain.state_dict()
    return rates, state["last_epoch"]


def hooks():
    net, seen = mlp(), []
    handles = [
        net[0].register_forward_hook(lambda m, i, o: seen.append(("forward", tuple(o.shape)))),
        net[0].register_forward_pre_hook(lambda m, i: seen.append(("pre", len(i)))),
        net[2].register_full_backward_hook(
            lambda m, gi, go: seen.append(("back", go[0].sum().item()))
        ),
    ]
    x = data(5, 4).requires_grad_()
    handle = x.register_hook(lambda g: g * 2)
    net(x).pow(2).sum().backward()
    first = x.grad.clone()
    handle.remove()
    for h in handles:
        h.remove()
    x.grad = None
    net(x).pow(2).sum().backward()
    net[2].register_forward_hook(lambda m, i, o: o + 1)
    return seen, first / x.grad, net(x)


def state_round_trip():
    net, other = mlp(), mlp()
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        net(data(4, 4)).square().mean().backward()
        opt.step()
    buffer = io.BytesIO()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3}, buffer)
    buffer.seek(0)
    state = torch.load(buffer, weights_only=True)
    result = other.load_state_dict(state["net"])
    again = torch.optim.Adam(other.parameters(), lr=1.0)
    again.load_state_dict(state["opt"])
    for n, o in ((net, opt), (other, again)):
        o.zero_grad()
        n(data(4, 4)).square().mean().backward()
        o.step()
    renamed = OrderedDict((k.replace("0.", "first."), v) for k, v in net.state_dict().items())
    missing = other.load_state_dict(renamed, strict=False)
    return (
        state["epoch"],
        list(state["net"]),
        result.missing_keys,
        missing.missing_keys,
        missing.unexpected_keys,
        again.param_groups[0]["lr"],
        [torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True)],
    )


class Swish(torch.autograd.Function):
    """x * sigmoid(x) with a gradient of its own."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.beta * x)
        return grad_output * (s + ctx.beta * x * s * (1 - s)), None


class StraightThrough(torch.autograd.Function):
    """Rounding whose gradient is that of the identity."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable()
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g if ctx.needs_input_grad[0] else None


def custom_function():
    x = data(6).requires_grad_()
    y = Swish.apply(x, 1.5)
    z = StraightThrough.apply(x * 3)
    (y.sum() + (z * torch.arange(6)).sum()).backward()
    double = torch.linspace(-2, 2, 5, dtype=torch.float64, requires_grad=True)
    checked = torch.autograd.gradcheck(lambda t: Swish.apply(t, 0.7), (double,))
    return y, z, x.grad, y.grad_fn is not None, checked


class Words(Dataset):
    """Sequences of different lengths with labels."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.arange(i % 4 + 1), i % 2


def collate(batch):
    items, labels = zip(*batch, strict=True)
    padded = nn.utils.rnn.pad_sequence(items, batch_first=True, padding_value=-1)
    return {"x": padded, "n": torch.tensor([len(i) for i in items]), "y": torch.tensor(labels)}


def loader():
    out = []
    for batch in DataLoader(Words(), batch_size=4, collate_fn=collate):
        out.append((batch["x"], batch["n"], batch["y"]))
    pairs = TensorDataset(data(7, 2), torch.arange(7))
    train, test = random_split(pairs, [5, 2])
    for x, y in DataLoader(pairs, batch_size=3, drop_last=True):
        out.append((x.shape, y.dtype == torch.int64, y))
    default = next(iter(DataLoader([{"a": 1, "b": (1.5, np.ones(2))}] * 2, batch_size=2)))
    return out, len(train), len(test), default["a"], default["b"][0], default["b"][1].dtype


class Registered(nn.Module):
    """Parameters, buffers, lists and dicts of modules."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("hidden", torch.zeros(1), persistent=False)
        self.register_parameter("none", None)
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})
        self.extra = nn.ParameterList([torch.zeros(1), torch.ones(2)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * self.scale - self.mean
        return self.heads["a"](x), self.heads["b"](x)


def registration():
    net = fill(Registered())
    net.layers.append(nn.Linear(2, 2))
    del net.heads["b"]
    net.heads["b"] = nn.Flatten()
    for p in net.layers.parameters():
        p.requires_grad_(False)
    names = [n for n, _ in net.named_parameters()]
    buffers = [n for n, _ in net.named_buffers()]
    kids = [(n, type(m).__name__) for n, m in net.named_modules()]
    double = copy.deepcopy(net).double()
    try:
        net.scale = torch.ones(2)
    except TypeError:
        kids.append("refused")
    fill(net.layers)
    net.apply(lambda m: m.train(False))
    return (
        names,
        buffers,
        list(net.state_dict()),
        kids,
        net.training,
        str(net.heads["a"]),
        double.scale.dtype,
        sum(p.numel() for p in net.parameters() if p.requires_grad),
        net(data(3, 2)),
        hasattr(net, "none"),
    )


def einsums():
    a, b, c = data(2, 3, 4), data(2, 4, 5, seed=1), data(4, 4, seed=2)
    q = data(2, 2, 6, 3, seed=3)
    scores = torch.einsum("bhid,bhjd->bhij", q, q)
    return (
        torch.einsum("bij,bjk->bik", a, b),
        torch.einsum("ii->i", c),
        torch.einsum("ij->", c),
        torch.einsum("...j,jk->...k", a, c),
        torch.einsum("i,j->ij", c[0], c[1]),
        torch.einsum(a, [0, 1, 2], c, [2, 3], [0, 1, 3]),
        scores.softmax(-1),
        torch.einsum("bij,bjk,kl->il", a, b, data(5, 2, seed=4)),
        torch.tensordot(a, b, dims=([2], [1])),
        torch.bmm(a, b),
        torch.baddbmm(torch.ones(1), a, b),
        a.flatten(1) @ torch.block_diag(c, c, c)[:12, :12],
    )


def scattering():
    src = torch.arange(1.0, 11).reshape(2, 5)
    index = torch.tensor([[0, 1, 2, 0, 0], [2, 0, 0, 1, 2]])
    out = torch.zeros(3, 5).scatter_(0, index, src)
    one_hot = torch.zeros(4, 3).scatter(1, torch.tensor([[0], [2], [1], [2]]), 1.0)
    added = torch.zeros(3, 5).scatter_add_(0, index, src)
    x = data(4, 6)
    top, where = x.topk(3, dim=1)
    put = torch.zeros(6).index_put_((torch.tensor([1, 1, 4]),), torch.ones(3), accumulate=True)
    masked = x.clone()
    masked[x > 0.5] = -1
    masked[:, ::2] += 10
    return (
        out,
        one_hot,
        added,
        x.gather(1, where) - top,
        put,
        masked,
        torch.zeros(3, 5).scatter_reduce(0, index, src, reduce="mean", include_self=False),
        x.index_select(1, torch.tensor([5, 0])),
        x.take(torch.tensor([0, 7])),
        x.index_fill(0, torch.tensor([1]), 3.0),
        torch.take_along_dim(x, where, dim=1),
        x.masked_select(x > 1),
        torch.where(x > 0),
        x.nonzero().shape,
        x.index_copy(0, torch.tensor([0]), torch.zeros(1, 6)),
        F.one_hot(torch.arange(3), 4),
    )


def masking():
    q = data(2, 5, 8)
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), diagonal=1)
    scores = (q @ q.transpose(-2, -1)) / math.sqrt(8)
    weights = scores.masked_fill(causal, float("-inf")).softmax(dim=-1)
    padding = torch.tensor([[False, False, False, True, True], [False] * 5])
    both = scores.masked_fill(padding[:, None, :], torch.finfo(scores.dtype).min).softmax(-1)
    attention = fill(nn.MultiheadAttention(8, 2, batch_first=True))
    y, w = attention(q, q, q, key_padding_mask=padding)
    z, none = attention(q, q, q, attn_mask=causal, need_weights=False)
    direct = F.scaled_dot_product_attention(q, q, q, attn_mask=~causal)
    x = torch.ones(3)
    x.masked_fill_(torch.tensor([True, False, True]), 5)
    return weights, both, y, w, z, none, direct, x, torch.tril(scores[0]), scores.isinf().any()


def amp():
    net = mlp()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    x, out = data(8, 4), []
    for step in range(4):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            loss = F.mse_loss(y.float(), torch.zeros(8, 3))
        out.append((y.dtype, loss.dtype, torch.is_autocast_enabled("cpu")))
        scaler.scale(loss * (float("inf") if step == 1 else 1)).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        out.append(scaler.get_scale())
    return out, {k: v for k, v in scaler.state_dict().items() if k != "_growth_tracker"}


def gradient_modes():
    w = data(3).requires_grad_()
    with torch.no_grad():
        a = w * 2
        b = w.new_ones(2).requires_grad_()
    with torch.inference_mode():
        c = w * 2
    with torch.set_grad_enabled(False), torch.enable_grad():
        d = w * 2

    @torch.no_grad()
    def f(x):
        return x * 2

    e = w.detach()
    e_is_shared = e.data_ptr() == w.data_ptr()
    g = torch.autograd.grad((w**3).sum(), w, create_graph=True)[0]
    h = torch.autograd.grad(g.sum(), w)[0]
    with torch.no_grad():
        w -= 0.1 * g
    unused = torch.autograd.grad(w.sum(), [w, b], allow_unused=True)[1]
    return (
        [t.requires_grad for t in (a, b, c, d, f(w), e, w)],
        e_is_shared,
        h,
        w,
        w.is_leaf,
        d.is_leaf,
        unused,
        torch.is_grad_enabled(),
    )


def in_place():
    x = torch.arange(6.0).reshape(2, 3)
    view = x.view(-1)
    view[1:3] *= 10
    x.add_(1).mul_(2).clamp_(max=30)
    x[0].zero_()
    x.t()[2] = 7
    x += torch.tensor([1, 2, 3])
    y = torch.zeros(3)
    y.copy_(x[1])
    y.fill_(2).pow_(3).sub_(1, alpha=2).div_(2).neg_().abs_().sqrt_()
    y.lerp_(torch.ones(3), 0.5)
    z = torch.empty(2)
    torch.add(torch.ones(2), 1, out=z)
    w = torch.ones(2, requires_grad=True)
    errors = []
    for f in (lambda: w.add_(1), lambda: torch.ones(2, dtype=torch.int64).div_(2)):
        try:
            f()
        except (RuntimeError, TypeError):
            errors.append("refused")
    a = w.exp()
    b = a * a
    a.add_(1)
    try:
        b.sum().backward()
    except RuntimeError:
        errors.append("modified")
    x.unsqueeze_(0).squeeze_(0).transpose_(0, 1)
    return x, view, y, z, errors


def promotion():
    i, f, h = torch.tensor([1, 2]), torch.tensor([1.5, 2.5]), torch.ones(2, dtype=torch.float16)
    b, u, d = torch.tensor([True, False]), torch.tensor([250, 7], dtype=torch.uint8), f.double()
    results = (
        i + f,
        i / 2,
        i // 2,
        i + 1.5,
        h + 1.5,
        h + f,
        f + d,
        f + torch.tensor(1),
        b + b,
        b + 1,
        u + 10,
        u + i,
        u + b,
        i.mean(dtype=torch.float32),
        i.sum(),
        b.sum(),
        i**2,
        i**-1.0,
        torch.true_divide(i, i),
        i % 2,
        -i,
        ~b,
        u >> 1,
        torch.sqrt(i),
        i.to(torch.int32).sum(),
        torch.cat([i, f]),
        torch.stack([h, h]),
        torch.where(b, i, f),
        torch.where(b, 1.0, 2),
        torch.tensor([1, 2.0]),
        torch.tensor(3),
        torch.full((2,), 1),
        torch.full((2,), True),
        torch.arange(3),
        torch.arange(3.0),
        torch.arange(0, 1, 0.5),
        torch.linspace(0, 1, 3),
        f > 2,
        torch.tensor([1j]) * f,
        torch.bitwise_and(i, 1),
        i.float().half().bfloat16(),
        i.new_tensor([1.0]),
    )
    types = [torch.result_type(i, 1.0), torch.promote_types(torch.int8, torch.uint8)]
    return [(r.dtype, r) for r in results], types, torch.can_cast(torch.float32, torch.int32)


def functional_transforms():
    from torch.func import (
        functional_call,
        grad,
        hessian,
        jacrev,
        jvp,
        stack_module_state,
        vjp,
        vmap,
    )

    net, x, y = mlp(), data(5, 4), torch.arange(5) % 3
    params = dict(net.named_parameters())

    def loss(params, x, y):
        return F.cross_entropy(functional_call(net, params, (x[None],)), y[None])

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    v = data(3)

    def f(v):
        return (v**3).sum() * v[0]

    value, tangent = jvp(f, (v,), (torch.ones(3),))
    _, pull = vjp(lambda v: v.sin(), v)
    stacked, buffers = stack_module_state([mlp(), mlp()])
    out = vmap(lambda p: functional_call(net, p, (x,)))(stacked)
    return (
        dict(per_sample),
        hessian(f)(v),
        jacrev(torch.exp)(v),
        value,
        tangent,
        pull(torch.ones(3))[0],
        out,
        len(buffers),
        vmap(torch.dot)(x, x),
        vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, x[0]),
    )


def losses():
    x, t, y = data(6, 4), data(6, 4, seed=1), torch.tensor([0, 1, 2, 3, 1, -100])
    p, log_p = torch.sigmoid(t), x.log_softmax(1)
    soft = t.softmax(1)
    return (
        F.mse_loss(x, t),
        F.l1_loss(x, t, reduction="sum"),
        F.smooth_l1_loss(x, t, beta=0.5),
        F.huber_loss(x, t, delta=0.7),
        F.cross_entropy(x, y),
        F.cross_entropy(x, soft),
        F.cross_entropy(x, y, label_smoothing=0.1, weight=torch.tensor([1.0, 2, 3, 4])),
        F.nll_loss(log_p, y),
        F.binary_cross_entropy(p, p),
        F.kl_div(log_p, soft, reduction="batchmean"),
        F.binary_cross_entropy_with_logits(x, p, pos_weight=torch.ones(4) * 2),
        F.cosine_embedding_loss(x, t, torch.tensor([1, -1, 1, -1, 1, 1])),
        F.triplet_margin_loss(x, t, t.flip(0)),
        F.margin_ranking_loss(x[:, 0], t[:, 0], torch.ones(6)),
        F.hinge_embedding_loss(x, torch.ones(6, 4)),
        F.soft_margin_loss(x, torch.ones(6, 4)),
        F.multi_margin_loss(x[:5], y[:5]),
        F.gaussian_nll_loss(x, t, p),
        F.poisson_nll_loss(x, p),
        F.multilabel_soft_margin_loss(x, p.round()),
        nn.CrossEntropyLoss(reduction="none")(x, y),
        F.ctc_loss(
            data(7, 2, 5).log_softmax(2),
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor([7, 6]),
            torch.tensor([2, 1]),
        ),
        F.cosine_similarity(x, t),
        F.pairwise_distance(x, t),
        torch.cdist(x, t),
    )


def packed():
    x = data(3, 5, 4)
    lengths = torch.tensor([3, 5, 1])
    out = []
    for cell in (nn.LSTM, nn.GRU, nn.RNN):
        net = fill(cell(4, 6, num_layers=2, batch_first=True, bidirectional=True))
        p = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = net(p)
        padded, n = pad_packed_sequence(y, batch_first=True)
        (padded.sum() + (h[0] if isinstance(h, tuple) else h).pow(2).sum()).backward()
        out.append(
            (padded, n, h, list(map(int, y.batch_sizes)), [q.grad for q in net.parameters()])
        )
    p = pack_sequence([data(3), data(2), data(1)])
    cell = fill(nn.LSTMCell(4, 6))
    state = None
    for t in range(5):
        state = cell(x[:, t], state)
    return out, p.data, int(sum(p.batch_sizes)), p.sorted_indices, state


def linear_algebra():
    a = data(4, 4)
    s = a @ a.T + 4 * torch.eye(4)
    u, sv, vh = torch.linalg.svd(data(5, 3), full_matrices=False)
    q, r = torch.linalg.qr(a)
    w, v = torch.linalg.eigh(s)
    chol = torch.linalg.cholesky(s)
    b = data(4, 2, seed=2)
    sign, logdet = torch.linalg.slogdet(s)
    lstsq = torch.linalg.lstsq(data(6, 3), data(6, 1, seed=5)).solution
    return (
        u @ torch.diag(sv) @ vh,
        sv,
        q @ r,
        w,
        v @ torch.diag(w) @ v.T,
        chol,
        torch.linalg.solve(s, b),
        torch.linalg.inv(s),
        torch.det(s),
        sign,
        logdet,
        lstsq,
        torch.linalg.norm(a),
        a.norm(dim=1),
        torch.linalg.matrix_norm(a, ord=1),
        torch.linalg.vector_norm(a, ord=3),
        torch.trace(a),
        torch.linalg.pinv(data(5, 3)),
        torch.linalg.matrix_power(s, 3),
        torch.linalg.matrix_rank(s),
        torch.cholesky_solve(b, chol),
        torch.linalg.solve_triangular(chol, b, upper=False),
        torch.logdet(s),
        torch.linalg.cross(a[:, :3], b[:, :1] + torch.arange(3)),
        torch.outer(a[0], a[1]),
        torch.linalg.multi_dot([a, s, b]),
        torch.linalg.cond(s),
        torch.linalg.eigvalsh(s),
        torch.kron(a[:2, :2], s[:2, :2]),
        torch.linalg.matrix_exp(a * 0.1),
        torch.svd(a).S,
    )


def distributions():
    from torch.distributions import (
        Bernoulli,
        Beta,
        Categorical,
        Dirichlet,
        Exponential,
        Gamma,
        Independent,
        Laplace,
        MultivariateNormal,
        Normal,
        Poisson,
        Uniform,
        kl_divergence,
    )

    loc = data(3).requires_grad_()
    n, m = Normal(loc, torch.tensor([1.0, 2, 3])), Normal(0.0, 1.0)
    c = Categorical(logits=data(2, 4))
    x = torch.tensor([0.2, 0.5, 0.7])
    n.log_prob(x).sum().backward()
    e = Independent(n, 1)
    s = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    return (
        n.log_prob(x),
        loc.grad,
        n.entropy(),
        n.cdf(x),
        n.icdf(x),
        kl_divergence(n, m),
        c.probs,
        c.log_prob(torch.tensor([1, 3])),
        c.entropy(),
        Bernoulli(x).log_prob(torch.ones(3)),
        Beta(2.0, 3.0).log_prob(x),
        Gamma(2.0, 3.0).log_prob(x),
        Exponential(2.0).log_prob(x),
        Uniform(0.0, 2.0).log_prob(x),
        Laplace(0.0, 1.0).cdf(x),
        Poisson(3.0).log_prob(torch.tensor(2.0)),
        Dirichlet(torch.ones(3)).log_prob(torch.tensor([0.2, 0.3, 0.5])),
        e.log_prob(x),
        e.event_shape,
        MultivariateNormal(torch.zeros(2), s).log_prob(torch.ones(2)),
        n.rsample().requires_grad,
        c.sample((5,)).shape,
        n.mean,
        n.variance,
        m.sample().shape,
        c.sample().dtype,
        n.batch_shape,
        kl_divergence(c, Categorical(logits=torch.zeros(2, 4))),
    )


def typed_tensors():
    x = torch.FloatTensor([1, 2, 3])
    n = torch.LongTensor([[1, 2], [3, 4]])
    kinds = (torch.FloatTensor, torch.LongTensor, torch.BoolTensor, torch.DoubleTensor)
    again = pickle.loads(pickle.dumps(kinds))
    return (
        x,
        n,
        torch.ByteTensor([255]).dtype,
        torch.Tensor(2, 3).shape,
        torch.Tensor([5]),
        x.type(),
        isinstance(x, torch.FloatTensor),
        isinstance(n, torch.FloatTensor),
        n.type(torch.FloatTensor),
        x.type(torch.int32),
        [a is b for a, b in zip(again, kinds, strict=True)],
        x.type_as(n),
        torch.is_tensor(x),
        torch.is_floating_point(n),
        copy.copy(kinds[0]) is kinds[0],
        pickle.loads(pickle.dumps(x)),
        pickle.loads(pickle.dumps(torch.float32)) is torch.float32,
        copy.deepcopy(x),
        n.int().dtype,
        torch.HalfTensor([1]).dtype,
        torch.IntTensor([1, 2]).tolist(),
        kinds[0].__name__,
    )


def convolutional():
    net = nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False),
            norm=nn.BatchNorm2d(4),
            act=nn.LeakyReLU(0.1),
            pool=nn.MaxPool2d(2),
            drop=nn.Dropout(0.5),
            flat=nn.Flatten(),
            fc=nn.Linear(16, 3),
        )
    )
    fill(net)
    net.drop.eval()
    x = data(3, 2, 8, 8)
    opt = torch.optim.RMSprop(net.parameters(), lr=0.01)
    out = []
    for _ in range(3):
        opt.zero_grad()
        y = net(x)
        y.logsumexp(1).mean().backward()
        out.append((y, net.conv.weight.grad.norm()))
        opt.step()
    net.eval()
    with torch.no_grad():
        out.append((net(x), net.norm.running_mean, net.norm.num_batches_tracked))
    return (
        out,
        F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
        F.adaptive_avg_pool2d(x, 1),
        F.pad(x, (1, 1, 2, 0), mode="reflect"),
        F.unfold(x, 3).shape,
        nn.ConvTranspose2d(2, 3, 2, stride=2)(x).shape,
        F.grid_sample(
            x,
            F.affine_grid(torch.eye(2, 3)[None].repeat(3, 1, 1), [3, 2, 4, 4], align_corners=False),
            align_corners=False,
        ),
        F.pixel_shuffle(data(1, 4, 2, 2), 2),
        nn.GroupNorm(2, 4)(data(2, 4, 3)),
    )


def shapes():
    x = torch.arange(24).reshape(2, 3, 4)
    a, b = x.split([1, 2], dim=1)
    return (
        x.permute(2, 0, 1).shape,
        x.transpose(0, 2).contiguous().stride(),
        a.shape,
        b,
        x.chunk(2, -1)[1],
        x.unfold(2, 2, 1),
        x.view(6, -1),
        x.expand(2, 2, 3, 4).shape,
        x.flatten(0, 1),
        x.movedim(0, -1).shape,
        x.squeeze(0).shape,
        x[None, ..., 0].shape,
        x.roll(1, 0),
        x.flip(-1),
        x.repeat(1, 2, 1).shape,
        torch.unbind(x, 1)[2],
        x.size(),
        x.size(-1),
        x.dim(),
        x.numel(),
        x.unflatten(2, (2, 2)).shape,
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0],
        torch.cartesian_prod(x[0, 0], x[0, 1]),
        torch.broadcast_to(x[0], (5, 3, 4)).shape,
        torch.atleast_2d(x[0, 0]).shape,
        x.narrow(2, 1, 2),
        torch.hstack([x, x]).shape,
        torch.vstack([x, x]).shape,
        x.diagonal(dim1=1, dim2=2),
        x.rot90(1, [1, 2]),
        torch.combinations(x[0, 0], 2),
        x.is_contiguous(),
        x.storage_offset(),
        x[1].storage_offset(),
        x.unique(),
        torch.unique(x % 5, return_counts=True),
        x.tensor_split(3, dim=2)[0].shape,
        *x.shape,
        x.shape == (2, 3, 4),
        (*x.shape[:2], 1),
        torch.Size([2, 3]).numel(),
        list(x.stride()),
        x.T.shape[0],
    )


def reductions():
    x = data(3, 4)
    values, where = x.max(dim=1)
    mn = x.min(0)
    return (
        values,
        where,
        mn.values,
        mn.indices,
        x.sort(descending=True),
        x.argsort(1),
        x.median(),
        x.median(1),
        x.mode(0).values.shape,
        x.std(),
        x.var(1, unbiased=False),
        torch.std_mean(x),
        x.quantile(0.3),
        x.cumsum(0),
        x.cumprod(1),
        x.cummax(1),
        x.kthvalue(2),
        x.prod(),
        x.amax((0, 1)),
        x.logsumexp(0),
        torch.aminmax(x),
        x.all(),
        x.any(1),
        x.count_nonzero(),
        x.argmax(),
        x.argmin(dim=0, keepdim=True),
        torch.bincount(torch.tensor([0, 1, 1, 3]), minlength=5),
        torch.histc(x, 4, -2, 2),
        x.norm(p=1),
        torch.max(x, x.flip(0)),
        torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([2, 5])),
        torch.bucketize(x, torch.tensor([-1.0, 0, 1])),
        x.nansum(),
        x.diff(),
        torch.trapz(x),
        x.renorm(2, 0, 1),
        torch.cov(x),
        torch.corrcoef(x),
        x.softmax(0).sum(),
        torch.nn.utils.parameters_to_vector([x, x]).shape,
    )


def early_stopping():
    net, best, patience = mlp(), None, 0
    opt = torch.optim.Adagrad(net.parameters(), lr=0.3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.5, patience=0)
    x, y = data(20, 4), torch.arange(20) % 3
    history = []
    for _ in range(12):
        net.train()
        for xb, yb in zip(x[:14].split(7), y[:14].split(7), strict=True):
            loss = nn.functional.cross_entropy(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            val = F.cross_entropy(net(x[14:]), y[14:])
            correct = (net(x[14:]).argmax(1) == y[14:]).float().mean()
        plateau.step(val)
        history.append((f"{val:.3f}", round(correct.item(), 3), opt.param_groups[0]["lr"]))
        if best is None or val < best[0]:
            best, patience = (val, copy.deepcopy(net.state_dict())), 0
        else:
            patience += 1
        if patience > 2:
            break
    net.load_state_dict(best[1])
    return history, net(x), len(history)


def swarm_of_optimizers():
    out = {}
    for name, kw in {
        "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        "Adam": {"lr": 0.1, "amsgrad": True},
        "AdamW": {"lr": 0.1},
        "NAdam": {"lr": 0.1},
        "RAdam": {"lr": 0.1},
        "Adamax": {"lr": 0.1},
        "Adadelta": {},
        "Adagrad": {"lr": 0.1},
        "RMSprop": {"lr": 0.1, "centered": True},
        "Rprop": {"lr": 0.1},
        "ASGD": {"lr": 0.1},
        "LBFGS": {"lr": 0.5, "max_iter": 4},
    }.items():
        w = data(3).requires_grad_()
        opt = getattr(torch.optim, name)([w], **kw)
        for _ in range(4):

            def closure(opt=opt, w=w):
                opt.zero_grad()
                loss = ((w - 1) ** 2).sum() + (w[0] * w[1]) ** 2
                loss.backward()
                return loss

            loss = opt.step(closure)
        out[name] = (w, loss, sorted(opt.state_dict()), opt.defaults.get("lr"))
    return out


def weight_tricks():
    net = fill(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    ema = torch.optim.swa_utils.AveragedModel(mlp(), avg_fn=lambda a, m, n: 0.9 * a + 0.1 * m)
    other = mlp()
    with torch.no_grad():
        for p in other.parameters():
            p.add_(1.0)
    ema.update_parameters(mlp())
    ema.update_parameters(other)
    flat = nn.utils.parameters_to_vector(other.parameters())
    nn.utils.vector_to_parameters(flat * 2, other.parameters())
    w = torch.empty(3, 5)
    nn.init.eye_(w)
    nn.init.constant_(w[0], 2.0)
    gains = [nn.init.calculate_gain(n) for n in ("relu", "tanh", "selu")]
    other.requires_grad_(False)
    return (
        net(data(2, 3)),
        spectral(data(2, 3)).shape,
        next(ema.module.parameters()),
        flat.shape,
        other(data(2, 4)),
        w,
        gains,
        any(p.requires_grad for p in other.parameters()),
        torch.utils.checkpoint.checkpoint(mlp(), data(2, 4), use_reentrant=False),
    )


def signals():
    t = torch.arange(16) / 16
    x = torch.sin(2 * math.pi * 3 * t) + 0.5
    spectrum = torch.fft.rfft(x)
    z = torch.polar(torch.ones(3), torch.tensor([0.0, 1.0, 2.0]))
    return (
        spectrum.abs(),
        torch.fft.irfft(spectrum, n=16),
        torch.fft.fftfreq(8),
        z.real,
        z.angle(),
        z.conj() * z,
        torch.view_as_real(z),
        torch.complex(t[:2], t[2:4]),
        torch.hann_window(6),
        torch.fft.fftshift(x)[:3],
        torch.stft(x, 8, hop_length=4, window=torch.hann_window(8), return_complex=True).abs(),
        F.conv1d(x[None, None], torch.ones(1, 1, 3) / 3, padding=1),
        torch.erf(x),
        torch.lgamma(x.abs() + 1),
        torch.special.expit(x),
        torch.atan2(x, t + 1),
        torch.hypot(x, t),
        torch.heaviside(x, t[:1]),
        x.frac(),
        torch.nan_to_num(torch.tensor([float("nan"), float("inf")]), posinf=1.0),
        torch.clamp(x, 0, 1),
        x.sign(),
        torch.isclose(x, x + 1e-9).all(),
        torch.allclose(x, x),
        torch.fmod(x, 0.3),
        torch.remainder(x, 0.3),
    )


PROGRAMS = (
    param_groups,
    schedulers,
    hooks,
    state_round_trip,
    custom_function,
    loader,
    registration,
    einsums,
    scattering,
    masking,
    amp,
    gradient_modes,
    in_place,
    promotion,
    functional_transforms,
    losses,
    packed,
    linear_algebra,
    distributions,
    typed_tensors,
    convolutional,
    shapes,
    reductions,
    early_stopping,
    swarm_of_optimizers,
    weight_tricks,
    signals,
)
