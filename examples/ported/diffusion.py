"""A denoising diffusion model of small pictures: U-Net, schedules, moving average, sampling."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def linear_beta_schedule(timesteps):
    """Return noise variances that rise linearly, scaled to the number of steps."""
    scale = 1000 / timesteps
    return torch.linspace(scale * 0.0001, scale * 0.02, timesteps)


def cosine_beta_schedule(timesteps, s=0.008):
    """Return noise variances whose cumulative product is a squared cosine."""
    x = torch.linspace(0, timesteps, timesteps + 1)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * torch.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0.0001, 0.9999)


def extract(a, t, x_shape):
    """Return `a` at the steps `t`, shaped to multiply a batch of `x_shape`."""
    batch_size = t.shape[0]
    out = a.gather(-1, t)
    return out.reshape(batch_size, *((1,) * (len(x_shape) - 1)))


class SinusoidalPositionEmbeddings(nn.Module):
    """Sines and cosines of a step number."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class ResBlock(nn.Module):
    """Two convolutions with group norm; the time embedding is added between them."""

    def __init__(self, dim_in, dim_out, time_dim, groups=4):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out))
        self.norm1 = nn.GroupNorm(groups, dim_in)
        self.conv1 = nn.Conv2d(dim_in, dim_out, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, dim_out)
        self.conv2 = nn.Conv2d(dim_out, dim_out, 3, padding=1)
        self.res_conv = nn.Conv2d(dim_in, dim_out, 1) if dim_in != dim_out else nn.Identity()

    def forward(self, x, time_emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.mlp(time_emb)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.res_conv(x)


class Unet(nn.Module):
    """A U-Net of two resolutions with a time embedding."""

    def __init__(self, dim=16, channels=1):
        super().__init__()
        time_dim = dim * 4
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(dim),
            nn.Linear(dim, time_dim),
            nn.GELU(),
            nn.Linear(time_dim, time_dim),
        )
        self.init_conv = nn.Conv2d(channels, dim, 3, padding=1)
        self.down1 = ResBlock(dim, dim, time_dim)
        self.downsample = nn.Conv2d(dim, 2 * dim, 4, stride=2, padding=1)
        self.down2 = ResBlock(2 * dim, 2 * dim, time_dim)
        self.mid = ResBlock(2 * dim, 2 * dim, time_dim)
        self.upsample = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(2 * dim, dim, 3, padding=1)
        )
        self.up1 = ResBlock(2 * dim, dim, time_dim)
        self.final = nn.Sequential(nn.GroupNorm(4, dim), nn.SiLU(), nn.Conv2d(dim, channels, 1))

    def forward(self, x, time):
        t = self.time_mlp(time)
        x = self.init_conv(x)
        skip = self.down1(x, t)
        h = self.down2(self.downsample(skip), t)
        h = self.mid(h, t)
        h = self.upsample(h)
        h = self.up1(torch.cat((h, skip), dim=1), t)
        return self.final(h)


class EMA:
    """An exponential moving average of a model's parameters."""

    def __init__(self, model, beta):
        self.beta = beta
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema, current in zip(self.model.parameters(), model.parameters(), strict=True):
            ema.data = ema.data * self.beta + (1 - self.beta) * current.data


class Diffusion:
    """The constants of the forward process, its loss, and the sampling loop."""

    def __init__(self, betas):
        self.timesteps = len(betas)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        self.betas = betas
        self.sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
        self.sqrt_alphas_cumprod = torch.sqrt(alphas_cumprod)
        self.sqrt_one_minus_alphas_cumprod = torch.sqrt(1.0 - alphas_cumprod)
        self.posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)

    def q_sample(self, x_start, t, noise):
        return (
            extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
            + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise
        )

    def p_losses(self, model, x_start, t, loss_type="huber"):
        noise = torch.randn_like(x_start)
        predicted = model(self.q_sample(x_start, t, noise), t)
        if loss_type == "l2":
            return F.mse_loss(noise, predicted)
        return F.smooth_l1_loss(noise, predicted)

    @torch.no_grad()
    def p_sample(self, model, x, t, t_index):
        betas_t = extract(self.betas, t, x.shape)
        sqrt_one_minus = extract(self.sqrt_one_minus_alphas_cumprod, t, x.shape)
        sqrt_recip = extract(self.sqrt_recip_alphas, t, x.shape)
        model_mean = sqrt_recip * (x - betas_t * model(x, t) / sqrt_one_minus)
        if t_index == 0:
            return model_mean
        variance = extract(self.posterior_variance, t, x.shape)
        return model_mean + torch.sqrt(variance) * torch.randn_like(x)

    @torch.no_grad()
    def sample(self, model, shape, device):
        img = torch.randn(shape, device=device)
        for i in reversed(range(0, self.timesteps)):
            t = torch.full((shape[0],), i, device=device, dtype=torch.long)
            img = self.p_sample(model, img, t, i)
        return img


def make_squares(n, size=16):
    """Return pictures of a bright square on a dark ground, of values from -1 to 1."""
    images = torch.full((n, 1, size, size), -1.0)
    corners = torch.randint(2, size - 8, (n, 2)).tolist()
    sides = torch.randint(4, 7, (n,)).tolist()
    for image, (row, column), side in zip(images, corners, sides, strict=True):
        image[0, row : row + side, column : column + side] = 1.0
    return images


def main(steps=150, batch_size=32, timesteps=60, samples=8, seed=0):
    """Train a U-Net on squares and sample from its moving average."""
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = make_squares(512)
    diffusion = Diffusion(cosine_beta_schedule(timesteps))
    model = Unet().to(device)
    ema = EMA(model, beta=0.98)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    losses = []
    for _ in range(steps):
        index = torch.randint(0, len(data), (batch_size,))
        batch = data[index].to(device)
        flip = torch.rand(batch_size) < 0.5
        batch = torch.where(flip[:, None, None, None], batch.flip(-1), batch)
        t = torch.randint(0, timesteps, (batch_size,), device=device).long()
        loss = diffusion.p_losses(model, batch, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        losses.append(loss.item())

    images = diffusion.sample(ema.model, (samples, 1, 16, 16), device)
    images = (images.clamp(-1, 1) + 1) / 2
    linear = Diffusion(linear_beta_schedule(timesteps))
    return {
        "losses": losses,
        "parameters": sum(p.numel() for p in model.parameters()),
        "signal_left": linear.sqrt_alphas_cumprod[-1].item(),
        "brightness": images.mean().item(),
        "contrast": images.flatten(1).std(dim=1).mean().item(),
        "extremes": ((images < 0.1) | (images > 0.9)).float().mean().item(),
        "data_brightness": ((data + 1) / 2).mean().item(),
    }


if __name__ == "__main__":
    results = main()
    print(f"first loss {results['losses'][0]:.3f}, last loss {results['losses'][-1]:.3f}")
    print({k: v for k, v in results.items() if k != "losses"})
