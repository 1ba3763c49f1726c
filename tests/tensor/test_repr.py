"""What tensors, data sets and generators print in a console."""

from __future__ import annotations

import dovetail as dt


def test_repr_says_how_a_tensor_gets_its_gradient() -> None:
    x = dt.ones(2, device="reference").requires_grad_()
    assert repr(x).endswith('device="reference", requires_grad=True)')
    assert repr(x * 2).endswith('device="reference", grad_fn=<multiply>)')
    assert repr(dt.nn.Parameter(dt.ones(1, device="reference"))).endswith("requires_grad=True)")
    assert repr(x.detach()).endswith('device="reference")')
    assert "grad" not in str(x)


def test_repr_of_containers_and_generators_names_their_contents() -> None:
    rows = dt.data.TensorDataset(dt.ones((3, 2), device="reference"))
    assert repr(rows) == "TensorDataset(3 rows of float32 (2,))"
    loader = dt.data.DataLoader(rows, 2)
    assert repr(loader) == f"DataLoader({rows!r}, batch_size=2, num_workers=0)"
    g = dt.random.default_rng(7)
    g.uniform(3, device="reference")
    assert (
        repr(g).startswith("Generator(seed=7, offset=") and repr(g) != "Generator(seed=7, offset=0)"
    )
    assert repr(dt.profile()) == "Profile(0 events)"
