"""Rows of `dt.nn.functional`, after PyTorch in float64."""

from __future__ import annotations

from typing import Any

from differential.table import Row, group

LARGEST = "torch.max(torch.abs(x))"
PAIR: dict[str, Any] = {
    "x": (3, 5), "y": (3, 5), "z": (3, 5), "u": (3, 5), "w": (2, 5, 5),
}  # fmt: skip
OVERFLOW = {
    f"{d} extremes": "what overflows in this dtype does not in the oracle's float64"
    for d in ("bfloat16", "float32", "float64")
}
PADDED = OVERFLOW | dict.fromkeys(
    ["nan", "inf"], "zeros of the padding are added like any others (docs/convolutions.md)"
)
IMAGES = {1: (2, 4, 8), 2: (2, 4, 6, 5), 3: (1, 2, 4, 4, 5)}
RANDOM = "draws random numbers; without training it is the identity"


def same(lines: str, **alike: Any) -> list[Row]:
    """Return rows whose call is also PyTorch's."""
    calls = [line.strip() for line in lines.strip().splitlines()]
    return [
        row if row.oracle else Row(**{**vars(row), "oracle": row.call.replace("dt.", "torch.")})
        for row in group("\n".join(calls), **alike)
    ]


ROWS = [
    *same(
        """
        F.celu(x)
        F.celu(x, alpha=0.5)
        F.elu(x)
        F.elu(x, alpha=2.0)
        F.gelu(x)
        F.gelu(x, approximate="tanh")
        F.hardshrink(x)
        F.hardsigmoid(x)
        F.hardswish(x)
        F.hardtanh(x)
        F.leaky_relu(x)
        F.leaky_relu(x, 0.2)
        F.logsigmoid(x)
        F.mish(x)
        F.relu(x)
        F.relu6(x)
        F.rrelu(x)
        F.selu(x)
        F.sigmoid(x)
        F.silu(x)
        F.softplus(x)
        F.softplus(x, beta=3, threshold=5)
        F.softshrink(x)
        F.softsign(x)
        F.tanh(x)
        F.tanhshrink(x)
        F.threshold(x, 0.125, 20.0)
        """,
        of="hf", ulps=6, scale="torch.abs(x)",
        but={"special": "PyTorch gives NaN or infinity at the ends of the range where a limit exists"},
    ),
    *same(
        """
        F.glu(x)
        F.log_softmax(x, dim=-1)
        F.softmax(x, dim=0)
        F.softmin(x, dim=-1)
        F.normalize(x)
        F.normalize(x, p=1, dim=0)
        F.normalize(x, p=3.0, dim=1)
        F.alpha_dropout(x)
        F.dropout(x, training=False)
        F.dropout1d(x, training=False)
        F.dropout2d(x[:, :, None, None], training=False)
        F.dropout3d(x[:, :, None, None, None], training=False)
        F.feature_alpha_dropout(x)
        F.prelu(x, x[0, :1])
        F.layer_norm(x, (4,))
        F.layer_norm(x, (3, 4), x * 0 + 2, x * 0 + 1)
        F.rms_norm(x, (4,))
        F.rms_norm(x, (4,), x[0], 0.1)
        F.group_norm(x, 2)
        F.group_norm(x, 4, x[0], x[1])
        F.batch_norm(x, x[0], u)
        F.batch_norm(x, None, None, x[0], x[1], training=True)
        F.instance_norm(x[None])
        F.instance_norm(x[None], None, None, x[:, 0], x[:, 1])
        F.local_response_norm(x[:, :, None], 2)
        F.local_response_norm(x[:, :, None], 3, alpha=0.5, beta=0.5, k=2.0)
        F.channel_shuffle(x[:, :, None, None], 2)
        F.pad(x, (1, 2))
        F.pad(x, (1, 0, 2, 1), value=3.0)
        F.pad(x[None], (1, 2), mode="reflect")
        F.pad(x[None], (1, 2), mode="replicate")
        F.pad(x[None], (1, 2), mode="circular")
        F.embedding(I([[0, 2], [1, 1]]), x)
        F.embedding_bag(I([0, 2, 1, 1]), x, I([0, 1]))
        F.embedding_bag(I([0, 2, 1, 1]), x, I([0, 1]), mode="sum")
        """,
        of="hf", shapes={"x": (3, 4), "u": (4,)}, ulps=16, scale="1000 * (1 + " + LARGEST + ")", but=OVERFLOW,
    ),
    *same(
        """
        F.mse_loss(x, y)
        F.mse_loss(x, y, reduction="none")
        F.mse_loss(x, y, reduction="sum")
        F.l1_loss(x, y)
        F.l1_loss(x, y, reduction="none")
        F.huber_loss(x, y)
        F.huber_loss(x, y, reduction="none", delta=0.5)
        F.smooth_l1_loss(x, y)
        F.smooth_l1_loss(x, y, reduction="none", beta=0.5)
        F.kl_div(x, y)
        F.kl_div(x, y, reduction="batchmean", log_target=True)
        F.kl_div(x, y, reduction="none")
        F.poisson_nll_loss(x, y)
        F.poisson_nll_loss(x, y, log_input=False, full=True, reduction="none")
        F.gaussian_nll_loss(x, y, u + 1)
        F.gaussian_nll_loss(x, y, u + 1, full=True, reduction="none")
        F.hinge_embedding_loss(x, I([[1, -1, 1, -1, 1]]))
        F.hinge_embedding_loss(x, I([[1, -1, 1, -1, 1]]), margin=2.0, reduction="none")
        F.margin_ranking_loss(x[0], y[0], I([1, -1, 1, -1, 1]))
        F.margin_ranking_loss(x[0], y[0], I([1, -1, 1, -1, 1]), margin=0.5, reduction="none")
        F.cosine_embedding_loss(x, y, I([1, -1, 1]))
        F.cosine_embedding_loss(x, y, I([1, -1, 1]), margin=0.2, reduction="none")
        F.triplet_margin_loss(x, y, z)
        F.triplet_margin_loss(x, y, z, p=1, swap=True, reduction="none")
        F.triplet_margin_with_distance_loss(x, y, z)
        F.binary_cross_entropy(u, u.flip(0))
        F.binary_cross_entropy(u, u.flip(0), reduction="none")
        F.cross_entropy(x, I([0, -100, 2]), reduction="none", label_smoothing=0.1)
        F.cross_entropy(x, u)
        F.nll_loss(x, I([0, 4, 2]))
        F.nll_loss(x, I([0, 4, 2]), y[0], reduction="none")
        F.cosine_similarity(x, y)
        F.cosine_similarity(x, y, dim=0)
        F.pairwise_distance(x, y)
        F.pairwise_distance(x, y, p=1, keepdim=True)
        F.linear(x, y)
        F.linear(x, y, y[:, 0])
        F.bilinear(x, y, w)
        """,
        of="hf", shapes=PAIR, ulps=16,
        scale="(torch.max(torch.abs(x)) + torch.max(torch.abs(y)) + 1) ** 2", but=OVERFLOW,
    ),
    *same(
        """
        F.cross_entropy(x, I([0, 4, 2]))
        F.cross_entropy(x, I([0, 4, 2]), u[0], reduction="sum")
        F.soft_margin_loss(x, I([[1, -1, 1, -1, 1]]))
        F.soft_margin_loss(x, I([[1, -1, 1, -1, 1]]), reduction="none")
        F.multi_margin_loss(x, I([0, 4, 2]))
        F.multi_margin_loss(x, I([0, 4, 2]), p=2, margin=0.5, reduction="none")
        F.multilabel_margin_loss(x, I([[0, 3, -1, 0, 0], [1, -1, 0, 0, 0], [0, 1, 2, 3, 4]]))
        F.multilabel_soft_margin_loss(x, u)
        F.binary_cross_entropy_with_logits(x, u)
        F.binary_cross_entropy_with_logits(x, u, z, reduction="none")
        """,
        of="hf", shapes=PAIR, ulps=16, scale="(torch.max(torch.abs(x)) + 2) ** 2",
        but={
            **OVERFLOW, "extremes": "PyTorch overflows where the logarithm of an exponential is finite",
            "nan": "PyTorch's comparisons lose NaN; what has weight 0 does not count here",
            "inf": "PyTorch subtracts infinities; dovetail gives the limit in BCE with logits",
        },
    ),
    Row("F.embedding_bag(I([0, 2, 1, 1]), x, I([0, 1]), mode='max')", "F.embedding_bag(I([0, 2, 1, 1]), x, I([0, 1]), mode='max')",
        of="hf", shapes={"x": (3, 4)}, but={"nan": "PyTorch loses NaN that does not come first"}),
    *same(
        """
        F.conv1d(x, y)
        F.conv1d(x, y, y[:, 0, 0], stride=2, padding=1)
        F.conv1d(x, y[:, :2], padding="same", groups=2)
        F.conv_transpose1d(x, y[:4], stride=2, output_padding=1)
        """,
        of="hf", shapes={"x": IMAGES[1], "y": (6, 4, 3)}, ulps=16,
        scale="torch.sum(torch.abs(y)) * torch.max(torch.abs(x))", but=PADDED,
    ),
    *same(
        """
        F.conv2d(x, y)
        F.conv2d(x, y, y[:, 0, 0, 0], stride=(2, 1), padding=1, dilation=(1, 2))
        F.conv_transpose2d(x, y[:4], y[0, :, 0, 0], stride=2, padding=1)
        """,
        of="hf", shapes={"x": IMAGES[2], "y": (6, 4, 3, 2)}, ulps=16,
        scale="torch.sum(torch.abs(y)) * torch.max(torch.abs(x))", but=PADDED,
    ),
    *same(
        """
        F.conv3d(x, y)
        F.conv_transpose3d(x, y[:2], stride=2)
        """,
        of="hf", shapes={"x": IMAGES[3], "y": (3, 2, 2, 2, 2)}, ulps=16,
        scale="torch.sum(torch.abs(y)) * torch.max(torch.abs(x))", but=PADDED,
    ),
    *same(
        """
        F.adaptive_avg_pool1d(x, 3)
        F.adaptive_max_pool1d(x, 3, return_indices=True)
        F.avg_pool1d(x, 3)
        F.avg_pool1d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
        F.lp_pool1d(x, 2, 3)
        F.lp_pool1d(x, 3.0, 2, stride=1)
        F.max_pool1d(x, 3)
        F.max_pool1d(x, 3, stride=2, padding=1, dilation=2, return_indices=True)
        F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)
        F.interpolate(x, 5)
        F.interpolate(x, scale_factor=2.0, mode="linear")
        F.interpolate(x, size=3, mode="area")
        """,
        of="hf", shapes={"x": IMAGES[1]}, ulps=12, scale=LARGEST, but=OVERFLOW,
    ),
    *same(
        """
        F.adaptive_avg_pool2d(x, (3, 2))
        F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
        F.avg_pool2d(x, 2)
        F.avg_pool2d(x, (3, 2), stride=2, padding=1, divisor_override=5)
        F.lp_pool2d(x, 2, 2)
        F.max_pool2d(x, 2)
        F.max_pool2d(x, 3, padding=1, ceil_mode=True, return_indices=True)
        F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
        F.pixel_shuffle(x, 2)
        F.pixel_unshuffle(x[:, :, :, :4], 2)
        F.unfold(x, 2)
        F.fold(F.unfold(x, 2), (6, 5), 2)
        F.interpolate(x, scale_factor=1.5)
        F.interpolate(x, size=(9, 4), mode="bilinear")
        F.interpolate(x, size=(9, 4), mode="bilinear", align_corners=True)
        F.interpolate(x, size=(9, 4), mode="bicubic")
        F.interpolate(x, size=(3, 4), mode="nearest-exact")
        F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True)
        F.upsample(x, size=(9, 4), mode="bilinear")
        """,
        of="hf", shapes={"x": IMAGES[2]}, ulps=16, scale="4 * " + LARGEST, but=OVERFLOW,
    ),
    *same(
        """
        F.adaptive_avg_pool3d(x, 2)
        F.adaptive_max_pool3d(x, 2)
        F.avg_pool3d(x, 2)
        F.lp_pool3d(x, 2, 2)
        F.max_pool3d(x, 2)
        F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)
        F.interpolate(x, size=(3, 5, 2), mode="trilinear")
        """,
        of="hf", shapes={"x": IMAGES[3]}, ulps=12, scale=LARGEST, but=OVERFLOW,
    ),
    *same(
        """
        F.grid_sample(x, y)
        F.grid_sample(x, y, mode="nearest", padding_mode="border")
        F.grid_sample(x, y, padding_mode="reflection", align_corners=True)
        """,
        of="hf", shapes={"x": (2, 3, 4, 5), "y": (2, 3, 3, 2)}, ulps=64, scale=LARGEST,
        but=OVERFLOW | dict.fromkeys(["nan", "inf"], "PyTorch reads a corner where a place is NaN"),
    ),
    *same(
        """
        F.affine_grid(x, (2, 1, 3, 4))
        F.affine_grid(x, (2, 1, 3, 4), align_corners=True)
        """,
        of="hf", shapes={"x": (2, 2, 3)}, ulps=8, scale="3 * " + LARGEST,
    ),
    *same(
        """
        F.scaled_dot_product_attention(x, y, z)
        F.scaled_dot_product_attention(x, y, y, is_causal=True, scale=0.3)
        F.scaled_dot_product_attention(x, y, y, attn_mask=w)
        """,
        of="hf", shapes={"x": (2, 3, 4), "y": (2, 3, 4), "z": (2, 3, 4), "w": (3, 3)},
        but=OVERFLOW | dict.fromkeys(["nan", "inf"], "what is masked counts as 0 (docs/attention.md)"), ulps=32, scale="1 + torch.max(torch.abs(x)) + torch.max(torch.abs(y)) * (1 + torch.max(torch.abs(x)))",
    ),
    Row("F.multi_head_attention_forward(x[:, None], x[:, None], x[:, None], 4, 2, dt.concat([y, y, y]), None, None, None, False, 0.0, y, None)",
        "F.multi_head_attention_forward(x[:, None], x[:, None], x[:, None], 4, 2, torch.concat([y, y, y]), None, None, None, False, 0.0, y, None)",
        of="f", shapes={"x": (3, 4), "y": (4, 4)}, ulps=64, scale="(torch.sum(torch.abs(y)) + 1) ** 2 * torch.max(torch.abs(x))",
        but=OVERFLOW),
    Row("F.multi_head_attention_forward(x[:, None], x[:, None], x[:, None], 4, 2, dt.concat([y, y, y]), None, None, None, False, 0.0, y, None)",
        "F.multi_head_attention_forward(x[:, None], x[:, None], x[:, None], 4, 2, torch.concat([y, y, y]), None, None, None, False, 0.0, y, None)",
        # The projections round to the half (docs/numerics.md): 2 units of bfloat16 at `scale`.
        of="h", shapes={"x": (3, 4), "y": (4, 4)}, ulps=2**17, scale="(torch.sum(torch.abs(y)) + 1) ** 2 * torch.max(torch.abs(x))",
        but=OVERFLOW | {"float16 extremes": "the projections overflow"}),
    *group(
        """
        F.rnn_tanh_cell(x, y, x, y) | torch.rnn_tanh_cell(x, y, x, y)
        F.rnn_relu_cell(x, y, x, y, x[:, 0], y[:, 0]) | torch.rnn_relu_cell(x, y, x, y, x[:, 0], y[:, 0])
        """,
        of="hf", shapes={"x": (3, 4), "y": (3, 3)}, ulps=32, scale="(1 + torch.max(torch.abs(x)) + torch.max(torch.abs(y))) ** 2", but=OVERFLOW,
    ),
    Row("F.gru_cell(x[:3], y[:3], x, y)", "torch.gru_cell(x[:3], y[:3], x, y)",
        of="hf", shapes={"x": (9, 4), "y": (9, 3)}, ulps=64, scale="(1 + torch.max(torch.abs(x)) + torch.max(torch.abs(y))) ** 2", but=OVERFLOW),
    Row("F.lstm_cell(x[:3], (y[:3], y[3:6]), x, y, x[:, 0], x[:, 1])", "torch.lstm_cell(x[:3], (y[:3], y[3:6]), x, y, x[:, 0], x[:, 1])",
        of="hf", shapes={"x": (12, 4), "y": (12, 3)}, ulps=64, scale="(1 + torch.max(torch.abs(x)) + torch.max(torch.abs(y))) ** 2", but=OVERFLOW),
    Row("F.one_hot(dt.astype(dt.abs(x), dt.int64) % 4, 4)", "F.one_hot(torch.abs(x).to(torch.int64) % 4, 4)", of="i", shapes={"x": (7,)}),
]  # fmt: skip
