"""A variational autoencoder for small pictures of ellipses."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset

SIZE = 28


class Ellipses(Dataset):
    """Pictures of one soft ellipse each, of values from 0 to 1, and the ellipse's radius."""

    def __init__(self, n):
        axis = torch.arange(SIZE, dtype=torch.float32)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        centre = SIZE / 2 + 5 * (torch.rand(n, 2) - 0.5)
        radius = 4 + 6 * torch.rand(n, 2)
        dx = (x[None] - centre[:, 0].view(-1, 1, 1)) / radius[:, 0].view(-1, 1, 1)
        dy = (y[None] - centre[:, 1].view(-1, 1, 1)) / radius[:, 1].view(-1, 1, 1)
        distance = (dx**2 + dy**2).sqrt()
        self.images = torch.sigmoid(8 * (1 - distance)).unsqueeze(1)
        self.radius = radius.mean(dim=1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.radius[index]


class VAE(nn.Module):
    """An encoder to the mean and log variance of a code, and a decoder."""

    def __init__(self, hidden=400, latent=20):
        super().__init__()
        self.fc1 = nn.Linear(SIZE * SIZE, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, SIZE * SIZE)
        self.latent = latent

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, SIZE * SIZE))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    """Return the reconstruction error and the divergence from a normal distribution."""
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, SIZE * SIZE), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE, KLD


def train(model, loader, optimizer, device, losses, steps):
    """Train for one pass, or until `steps` losses are known."""
    model.train()
    for data, _ in loader:
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        bce, kld = loss_function(recon_batch, data, mu, logvar)
        loss = bce + kld
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / len(data))
        if len(losses) == steps:
            return


def test(model, loader, device):
    """Return the mean loss of a picture, and the mean absolute error of its pixels."""
    model.eval()
    test_loss, error = 0, 0
    with torch.no_grad():
        for data, _ in loader:
            data = data.to(device)
            recon_batch, mu, logvar = model(data)
            test_loss += sum(loss_function(recon_batch, data, mu, logvar)).item()
            error += F.l1_loss(recon_batch.view_as(data), data, reduction="sum").item()
    return test_loss / len(loader.dataset), error / loader.dataset.images.numel()


def probe(model, dataset):
    """Return the part of the radius' variance that a linear map of the code explains."""
    with torch.no_grad():
        mu, _ = model.encode(dataset.images.view(-1, SIZE * SIZE))
    features = torch.cat([mu, torch.ones(len(mu), 1)], dim=1)
    target = dataset.radius.unsqueeze(1)
    solution = torch.linalg.lstsq(features, target).solution
    residual = target - features @ solution
    return (1 - residual.var() / target.var()).item()


def main(steps=640, batch_size=32, seed=1):
    """Train, test and sample; return the losses and statistics of the samples."""
    torch.manual_seed(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set, test_set = Ellipses(1024), Ellipses(256)
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=batch_size, shuffle=False)

    model = VAE().to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)

    losses = []
    while len(losses) < steps:
        train(model, train_loader, optimizer, device, losses, steps)
        scheduler.step()
    test_loss, pixel_error = test(model, test_loader, device)

    with torch.no_grad():
        sample = torch.randn(64, model.latent).to(device)
        sample = model.decode(sample).cpu().view(64, 1, SIZE, SIZE)
        z = torch.zeros(1, model.latent)
        prototype = model.decode(z).view(SIZE, SIZE)
        rows = prototype.argmax(dim=1)
    return {
        "losses": losses,
        "test_loss": test_loss,
        "pixel_error": pixel_error,
        "radius_r2": probe(model, test_set),
        "sample_mean": sample.mean().item(),
        "sample_std": sample.std().item(),
        "brightest_column": rows.float().mean().item(),
    }


if __name__ == "__main__":
    results = main()
    print(f"first loss {results['losses'][0]:.2f}, last loss {results['losses'][-1]:.2f}")
    print({k: v for k, v in results.items() if k != "losses"})
