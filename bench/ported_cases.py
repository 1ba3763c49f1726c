"""Training steps of the programs in `examples/ported`, each as a function of one iteration.

A case gets a program as a module, which imports PyTorch or `dovetail.torch`, and a decorator for
the functions that a user would capture. It returns a function that does one iteration of the
program's training loop and returns the loss: it makes the batch, trains, and reads the loss.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

Step = Callable[[], float]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

BATCH = 32
STEPS = 100_000  # of the whole training, for learning rates


def repeat(loader: Any) -> Iterator[Any]:
    """Yield the batches of a loader, pass after pass."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


def nanogpt(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of a character-level GPT."""
    torch = p.torch
    text = p.make_text(2000)
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text], dtype=torch.long)
    config = p.GPTConfig(vocab_size=len(chars))
    model = p.GPT(config)
    optimizer = model.configure_optimizers(0.1, 1e-2, (0.9, 0.95), "cpu")
    count = itertools.count()

    def get_batch() -> Any:
        ix = torch.randint(len(data) - config.block_size, (BATCH,))
        x = torch.stack([data[i : i + config.block_size] for i in ix])
        y = torch.stack([data[i + 1 : i + 1 + config.block_size] for i in ix])
        return x, y

    @capture
    def train_step(x: Any, y: Any) -> Any:
        _, loss = model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    def step() -> float:
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (1 - next(count) / STEPS)
        return float(train_step(*get_batch()).item())

    return step


def resnet(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of a residual network."""
    torch = p.torch
    loader = p.DataLoader(
        p.TensorDataset(*p.make_images(512)), batch_size=BATCH, shuffle=True, drop_last=True
    )
    net = p.ResNet(p.BasicBlock, [1, 1, 1])
    criterion = p.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=STEPS)
    batches = repeat(loader)

    @capture
    def train_step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        return loss, outputs

    def step() -> float:
        inputs, targets = next(batches)
        loss, outputs = train_step(inputs, targets)
        scheduler.step()
        _, predicted = outputs.max(1)
        predicted.eq(targets).sum().item()
        return float(loss.item())

    return step


def vae(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of a variational autoencoder."""
    loader = p.DataLoader(p.Ellipses(1024), batch_size=BATCH, shuffle=True)
    model = p.VAE()
    optimizer = p.optim.Adam(model.parameters(), lr=1e-3)
    batches = repeat(loader)

    @capture
    def train_step(data: Any) -> Any:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        bce, kld = p.loss_function(recon_batch, data, mu, logvar)
        loss = bce + kld
        loss.backward()
        optimizer.step()
        return loss

    return lambda: float(train_step(next(batches)[0]).item())


def dqn(p: ModuleType, capture: Decorator) -> Step:
    """Return an iteration of deep Q-learning: act, learn from 32 transitions, move the target."""
    torch = p.torch
    rng = random.Random(3)
    env = p.CartPole(rng)
    agent = p.Agent(rng, BATCH, torch.device("cpu"))
    for name in ("learn", "update_target"):
        setattr(agent, name, capture(getattr(agent, name)))
    state = None

    def step() -> float | None:
        nonlocal state
        if state is None:
            state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
        action = agent.select_action(state)
        observation, reward, terminated, truncated = env.step(action.item())
        next_state = None
        if not terminated:
            next_state = torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        agent.memory.push(state, action, next_state, torch.tensor([reward]))
        state = None if truncated else next_state
        loss: float | None = agent.optimize_model()
        agent.update_target()
        return loss

    while step() is None:  # until the memory has a batch
        pass
    return step  # type: ignore[return-value]  # a number from here on


def diffusion(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of a denoising diffusion model."""
    torch, timesteps = p.torch, 60
    data = p.make_squares(512)
    process = p.Diffusion(p.cosine_beta_schedule(timesteps))
    model = p.Unet()
    ema = p.EMA(model, beta=0.98)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    @capture
    def train_step(index: Any) -> Any:
        batch = data[index]
        flip = torch.rand(BATCH) < 0.5
        batch = torch.where(flip[:, None, None, None], batch.flip(-1), batch)
        t = torch.randint(0, timesteps, (BATCH,)).long()
        loss = process.p_losses(model, batch, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def step() -> float:
        loss = train_step(torch.randint(0, len(data), (BATCH,)))
        ema.update(model)  # it binds `.data` to new tensors, which a capture refuses
        return float(loss.item())

    return step


def graph(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of a graph convolution, and one of graph attention."""
    torch, functional = p.torch, p.F
    classes = 4
    x, edge_index, y = p.make_graph(classes=classes)
    x = functional.normalize(x, p=2.0, dim=1)
    train_mask = torch.zeros(len(y), dtype=torch.bool)
    for c in range(classes):
        train_mask[(y == c).nonzero().flatten()[:BATCH]] = True

    def trainer(model: Any) -> Callable[[], Any]:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

        @capture
        def train_step() -> Any:
            optimizer.zero_grad()
            out = functional.log_softmax(model(x, edge_index), dim=1)
            loss = functional.nll_loss(out[train_mask], y[train_mask])
            loss.backward()
            optimizer.step()
            return loss

        return train_step

    gcn = trainer(p.GCN(x.size(1), 32, classes))
    gat = trainer(p.GAT(x.size(1), 16, classes))
    return lambda: float(gcn().item()) + float(gat().item())


def lstm(p: ModuleType, capture: Decorator) -> Step:
    """Return a step of an LSTM on packed sentences."""
    torch = p.torch
    sentences = p.make_sentences(1024, 5)
    vocabulary = p.Vocabulary(sentences)
    loader = p.DataLoader(
        p.Sentences(sentences, vocabulary), batch_size=BATCH, shuffle=True, collate_fn=p.collate,
        drop_last=True,
    )  # fmt: skip
    model = p.LSTMLanguageModel(len(vocabulary))
    criterion = p.nn.CrossEntropyLoss(ignore_index=p.PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    batches = repeat(loader)

    @capture
    def train_step(inputs: Any, targets: Any, lengths: Any) -> Any:
        optimizer.zero_grad()
        logits, _ = model(inputs, lengths)
        loss = criterion(logits.view(-1, logits.size(-1)), targets.view(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, norm

    def step() -> float:
        loss, norm = train_step(*next(batches))
        norm.item()
        return float(loss.item())

    return step


CASES = {f.__name__: f for f in (nanogpt, resnet, vae, dqn, diffusion, graph, lstm)}
