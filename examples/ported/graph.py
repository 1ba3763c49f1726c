"""Graph convolution and graph attention on a generated graph, written with scatter."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter_sum(src, index, dim_size):
    """Return the sums of the rows of `src` with the same index."""
    out = src.new_zeros((dim_size, *src.shape[1:]))
    return out.index_add_(0, index, src)


def scatter_max(src, index, dim_size):
    """Return the largest value of each column among the rows with the same index."""
    index = index.view(-1, *([1] * (src.dim() - 1))).expand_as(src)
    out = torch.full((dim_size, *src.shape[1:]), float("-inf"), dtype=src.dtype)
    return out.scatter_reduce(0, index, src, reduce="amax", include_self=True)


def edge_softmax(scores, index, num_nodes):
    """Return the softmax of the scores among the edges that end in the same node."""
    largest = scatter_max(scores.detach(), index, num_nodes)
    weights = torch.exp(scores - largest[index])
    total = torch.zeros(num_nodes, scores.size(1)).scatter_add(
        0, index.unsqueeze(1).expand_as(weights), weights
    )
    return weights / (total.index_select(0, index) + 1e-16)


class GCNConv(nn.Module):
    """The mean of the neighbours' features, weighted by the degrees, after a linear map."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.lin = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, x, edge_index):
        row, col = edge_index
        deg = torch.bincount(col, minlength=x.size(0)).to(x.dtype)
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        messages = norm.view(-1, 1) * self.lin(x)[row]
        return scatter_sum(messages, col, x.size(0)) + self.bias


class GATConv(nn.Module):
    """A sum of the neighbours' features with weights that attention gives, per head."""

    def __init__(self, in_features, out_features, heads=1, dropout=0.0):
        super().__init__()
        self.heads, self.out_features, self.dropout = heads, out_features, dropout
        self.lin = nn.Linear(in_features, heads * out_features, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_features))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_features))
        self.bias = nn.Parameter(torch.zeros(heads * out_features))
        self.reset_parameters()

    def reset_parameters(self):
        gain = nn.init.calculate_gain("leaky_relu", 0.2)
        nn.init.xavier_normal_(self.lin.weight, gain=gain)
        nn.init.xavier_uniform_(self.att_src)
        nn.init.xavier_uniform_(self.att_dst)

    def forward(self, x, edge_index):
        n = x.size(0)
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x).view(n, self.heads, self.out_features)
        alpha_src = (h * self.att_src).sum(dim=-1)
        alpha_dst = (h * self.att_dst).sum(dim=-1)
        scores = F.leaky_relu(alpha_src[src] + alpha_dst[dst], negative_slope=0.2)
        alpha = edge_softmax(scores, dst, n)
        alpha = F.dropout(alpha, p=self.dropout, training=self.training)
        out = scatter_sum(h[src] * alpha.unsqueeze(-1), dst, n)
        return out.flatten(start_dim=1) + self.bias


class GAT(nn.Module):
    """Two layers of graph attention."""

    def __init__(self, features, hidden, classes, heads=4):
        super().__init__()
        self.conv1 = GATConv(features, hidden, heads=heads)
        self.conv2 = GATConv(hidden * heads, classes)

    def forward(self, x, edge_index):
        x = F.elu(self.conv1(x, edge_index))
        return self.conv2(x, edge_index)


class GCN(nn.Module):
    """Two graph convolutions."""

    def __init__(self, features, hidden, classes):
        super().__init__()
        self.conv1 = GCNConv(features, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv2(x, edge_index)


def make_graph(nodes_per_class=256, classes=4, features=32, degree=8):
    """Return features, edges with self loops, and classes of a stochastic block graph."""
    n = nodes_per_class * classes
    y = torch.arange(classes).repeat_interleave(nodes_per_class)
    src = torch.arange(n).repeat(degree)
    same = torch.rand(n * degree) < 0.8
    inside = y[src] * nodes_per_class + torch.randint(0, nodes_per_class, (n * degree,))
    anywhere = torch.randint(0, n, (n * degree,))
    dst = torch.where(same, inside, anywhere)
    edges = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
    keep = edges[0] != edges[1]
    edges = torch.unique(edges[:, keep], dim=1)
    loops = torch.arange(n).repeat(2, 1)
    edge_index = torch.cat([edges, loops], dim=1)
    centres = torch.randn(classes, features)
    x = centres[y] * 0.5 + torch.randn(n, features) * 2
    order = torch.randperm(n)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n)
    return x[order], rank[edge_index], y[order]


def accuracy(logits, y, mask):
    """Return the part of the masked nodes whose class is right."""
    pred = logits.argmax(dim=1)
    return int((pred[mask] == y[mask]).sum()) / int(mask.sum())


def fit(model, x, edge_index, y, train_mask, test_mask, steps):
    """Train on the masked nodes; return the losses and the accuracy of the others."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(steps):
        model.train()
        optimizer.zero_grad()
        out = F.log_softmax(model(x, edge_index), dim=1)
        loss = F.nll_loss(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        return losses, accuracy(model(x, edge_index), y, test_mask)


def main(steps=200, batch_size=32, seed=7):
    """Train both networks on `batch_size` nodes of each class; return losses and accuracies."""
    torch.manual_seed(seed)
    classes = 4
    x, edge_index, y = make_graph(classes=classes)
    x = F.normalize(x, p=2.0, dim=1)
    train_mask = torch.zeros(len(y), dtype=torch.bool)
    for c in range(classes):
        chosen = (y == c).nonzero().flatten()[:batch_size]
        train_mask[chosen] = True
    test_mask = ~train_mask

    gcn = GCN(x.size(1), 32, classes)
    gcn_losses, gcn_accuracy = fit(gcn, x, edge_index, y, train_mask, test_mask, steps)
    gat = GAT(x.size(1), 16, classes)
    gat_losses, gat_accuracy = fit(gat, x, edge_index, y, train_mask, test_mask, steps)

    with torch.no_grad():
        scores = torch.zeros(edge_index.size(1), 1)
        weights = edge_softmax(scores, edge_index[1], len(y))
        degrees = torch.bincount(edge_index[1], minlength=len(y))
    return {
        "losses": gcn_losses + gat_losses,
        "edges": edge_index.shape[1],
        "largest_degree": degrees.max().item(),
        "smallest_weight": weights.min().item(),
        "gcn_accuracy": gcn_accuracy,
        "gat_accuracy": gat_accuracy,
    }


if __name__ == "__main__":
    results = main()
    print({k: v for k, v in results.items() if k != "losses"})
