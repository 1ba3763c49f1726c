# %% [markdown]
# # Your own backend
#
# A backend brings a device to dovetail. It owns memory, and compiles a small language of loops; it knows nothing of tensors, shapes or gradients. So
# it is small: the one that you make here has less than 200 lines, and everything in dovetail runs on it.
#
# You need a C compiler (`gcc` or `clang`).
# %%
import os
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())


def shell(*command, **environ):
    """Runs a command and prints the end of what it says."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environ}
    )
    print("\n".join((done.stdout + done.stderr).strip().splitlines()[-8:]))
    assert done.returncode == 0


# %% [markdown]
# ## A package that works
#
# `dovetail new-backend` writes it. Nothing is left to be filled in: it compiles each kernel with the system's C compiler, loads it, and calls it.
# %%
shell(sys.executable, "-m", "dovetail.commands.cli", "new-backend", "tutorial")
package = folder / "dovetail-tutorial"
for path in sorted(package.rglob("*.*")):
    if path.is_file():
        print(f"{len(path.read_text().splitlines()):4} lines  {path.relative_to(folder)}")
# %% [markdown]
# Install it as any other package. (Here into a folder of its own, so that this notebook leaves nothing behind; you would type
# `pip install --editable dovetail-tutorial`.)
# %%
site = folder / "site"
shell(
    sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
    "--no-index", "--disable-pip-version-check", "--target", str(site), str(package),
)  # fmt: skip
sys.path.insert(0, str(site))
# %% [markdown]
# ## It is a device
#
# Plugins are found by their entry points. `tutorial` is a device now, like `cpu`:
# %%
import dovetail as dt

x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="tutorial")
dt.softmax(x @ x.T, axis=1)


# %% [markdown]
# All of it works: gradients, sorting, sparse tensors, random numbers. They are made of kernels, and kernels are what the backend compiles. And
# the bits are the same as elsewhere:
# %%
def work(device):
    with dt.vendor_products(False):
        x = dt.random.default_rng(0).normal((200, 100), device=device).requires_grad_()
        loss = dt.sum(dt.log_softmax(dt.tanh(x @ x.mT), axis=1) ** 2)
        loss.backward()
    return loss.item(), x.grad.numpy().tobytes()


assert work("tutorial") == work("reference")
print("the same bits as the reference, gradient included")
# %% [markdown]
# ## What a backend sees
#
# A *kernel*, in the kernel IR. `dt.explain` shows it:
# %%
launch = dt.explain(x * 2 + 1, source=True).launches[0]
print(launch.text)
# %% [markdown]
# The backend renders it as C. That text, or what stands in its place for your hardware, is most of the work of a new one:
# %%
print(launch.source)
# %% [markdown]
# ## Change it
#
# The class of the device has a method for each thing that a backend does. Here `launch` also counts; yours would hand the work to a
# queue.
# %%
import inspect

from dovetail_tutorial.device import CBackend

print(inspect.getsource(CBackend.launch))
# %%
seen = []
plain = CBackend.launch


def launch(self, program, *rest, **more):
    seen.append(str(program.kernel.name))
    return plain(self, program, *rest, **more)


CBackend.launch = launch
y = dt.sort(dt.random.default_rng(1).normal((1000,), device="tutorial"))
dt.evaluate(y)
CBackend.launch = plain
print(len(seen), "launches to sort 1,000 numbers")
assert dt.all(y[1:] >= y[:-1]) and seen
# %% [markdown]
# ## Is it right?
#
# The conformance kit says. It has some thousands of cases, and each says what it wants in its docstring. A small part:
# %%
path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
shell(
    sys.executable, "-m", "dovetail.commands.cli", "test-backend", "tutorial",
    "--sample", "10", "-k", "streams", "-q", "-n", "0", "-p", "no:cacheprovider",
    PYTHONPATH=path,
)  # fmt: skip
# %% [markdown]
# After each change run a part, and at the end all of it: `dovetail test-backend tutorial --report certificate.json`.
#
# | if your hardware ... | replace |
# |---|---|
# | must be found | `dovetail_probe` in `plugin.py` |
# | lacks dtypes or rounding | its `Capabilities`; the core rewrites kernels |
# | speaks another C | `STYLE` in `compile.py` |
# | has its own compiler | `compile_kernel` |
# | has its own memory | `allocate`, `free`, `copy_in`, `copy_out` |
# | runs work later | `launch`, `synchronize`, streams and events |
#
# ## What to read next
#
# - [Writing a backend](../writing-a-backend.md): every part, and what must hold.
# - [Conformance](../conformance.md): what the kit looks at.
# - [A custom kernel](06_custom_kernel.ipynb): the kernel IR from the other side.
