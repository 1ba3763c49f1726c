# %% [markdown]
# # PageRank on a sparse matrix
#
# Which page of a web is important? One to which important pages link. That is an equation for all pages at once, and its solution is
# what a reader does who follows links at random: the share of the time that is spent on each page.
#
# Almost all pairs of pages have no link. A *sparse* tensor keeps the links and not the zeros.
# %%
import math

import dovetail as dt
import matplotlib.pyplot as plt

plt.rcParams["figure.dpi"] = 84
# %% [markdown]
# ## A small web
# %%
pages = ["home", "news", "shop", "blog", "help", "about", "jobs"]
links = [
    ("home", "news"), ("home", "shop"), ("home", "about"), ("news", "home"), ("news", "blog"),
    ("shop", "home"), ("shop", "help"), ("blog", "news"), ("blog", "home"), ("help", "home"),
    ("about", "jobs"), ("about", "home"), ("jobs", "about"),
]  # fmt: skip
source = dt.asarray([pages.index(a) for a, _ in links])
target = dt.asarray([pages.index(b) for _, b in links])
# %% [markdown]
# A reader on a page takes each of its links with the same chance. So column *j* of the matrix has `1 / (links of j)` in each row to which *j* links. Positions
# and values are all that a sparse tensor is made of:
# %%
n = len(pages)
leaving = dt.bincount(source, minlength=n)
chance = (1 / leaving)[source]
web = dt.sparse_coo_tensor(dt.stack([target, source]), chance, (n, n)).to_sparse_csr()
web.to_dense()


# %% [markdown]
# ## The reader
#
# In a step the reader follows a link, or, one time in seven, gets bored and opens any page. Without that, a group of pages without
# links to the outside would keep all readers for ever. The shares converge quickly: what is wrong shrinks by 0.85 each time.
# %%
def step(web, rank, follow=0.85):
    return follow * (web @ rank) + (1 - follow) / rank.shape[0]


rank = dt.full(n, 1 / n)
for _ in range(50):
    rank = step(web, rank)
for share, page in sorted(zip(rank.tolist(), pages, strict=True), reverse=True):
    print(f"{page:6} {share:.3f}  {'#' * round(100 * share)}")
assert abs(dt.sum(rank).item() - 1) < 1e-5
# %%
places = [(math.cos(2 * math.pi * i / n), math.sin(2 * math.pi * i / n)) for i in range(n)]
fig, axis = plt.subplots(figsize=(4.6, 4.6))
for a, b in links:
    arrow = {
        "arrowstyle": "->",
        "color": "#999",
        "shrinkA": 22,
        "shrinkB": 22,
        "connectionstyle": "arc3,rad=.1",
    }
    axis.annotate("", places[pages.index(b)], places[pages.index(a)], arrowprops=arrow)
axis.scatter(
    *zip(*places, strict=True), s=6000 * rank, c=rank, cmap="viridis_r", zorder=2, alpha=0.8
)
for page, (px, py) in zip(pages, places, strict=True):
    axis.text(px, py, page, ha="center", va="center", zorder=3)
axis.set_xlim(-1.5, 1.5), axis.set_ylim(-1.5, 1.5)
axis.axis("off")
plt.show()
# %% [markdown]
# ## A larger one
#
# 20,000 pages, in which a few are popular. Dense, this matrix would have 400 million numbers, 1.6 GB; sparse, it has some 200,000 links.
# A page without links (they exist) keeps its readers nowhere: they, too, open any page, so what is missing from the sum is spread evenly.
# %%
n, count = 20_000, 200_000
draw = dt.random.default_rng(0)
source = draw.integers(0, n, (count,))
target = (n * draw.uniform((count,)) ** 3).astype(dt.int64)  # small numbers are popular
leaving = dt.maximum(dt.bincount(source, minlength=n), 1)
web = dt.sparse_coo_tensor(dt.stack([target, source]), (1 / leaving)[source], (n, n))
web = web.coalesce().to_sparse_csr()  # a link that was drawn twice counts twice
print(web.shape, f"{web.nnz:,} stored, {web.nnz / n**2:.3%} of all")


@dt.jit
def step(rank):
    flow = 0.85 * (web @ rank)
    return flow + (1 - dt.sum(flow)) / n


rank, changes = dt.full(n, 1 / n), []
for _ in range(40):
    before, rank = rank, step(rank)
    changes.append(dt.sum(dt.abs(rank - before)))

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
left.semilogy(dt.stack(changes))
left.set_title("change in each step"), left.set_xlabel("step")
right.loglog(dt.sort(rank, descending=True))
right.set_title("rank of the pages, sorted")
plt.show()
top = dt.argsort(rank, descending=True)[:5]
print("most important:", top.tolist())
assert dt.all(top < 100) and changes[-1].item() < 1e-5
# %% [markdown]
# ## What if?
#
# Which links make page 0 important? That is a gradient: how much its rank changes with the strength of each link. Gradients flow to
# the values that a sparse tensor stores. Times the strength itself it is the part of the rank that came through the link.
# %%
values = web.values().requires_grad_()
again = dt.sparse_csr_tensor(web.crow_indices(), web.col_indices(), values, web.shape)
r = dt.full(n, 1 / n)
for _ in range(10):
    r = 0.85 * (again @ r) + 0.15 / n
r[0].backward()
rows, columns = web.to_sparse().indices()
through = (values * values.grad).detach()
best = dt.argsort(through, descending=True)[:6]
for i in best.tolist():
    print(
        f"page {columns[i].item():6} -> page {rows[i].item():6}: {through[i].item() / r[0].item():.2%}"
    )
into = rows == 0
print(f"a link to page 0: {dt.mean(through[into]):.1e}, any other: {dt.mean(through[~into]):.1e}")
assert dt.mean(through[into]) > 5 * dt.mean(through[~into])
# %% [markdown]
# What counts most are links to page 0 from pages that are important themselves, and links to pages that have few others than the one to page 0.
#
# ## What to read next
#
# - [Sparse tensors](../sparse.md): layouts, what costs what, solvers.
# - [A heat equation](02_heat_equation.ipynb): an iteration on dense fields.
# - `examples/pagerank.py` and `examples/conjugate_gradients.py`: beside SciPy.
