"""A residual network for small colour images: batch norm, one-cycle SGD, a data loader."""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut around them."""

    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(
            in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(
                    in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False
                ),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    """Three stages of basic blocks, average pooling and a linear classifier."""

    def __init__(self, block, num_blocks, num_classes=10, width=16):
        super().__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(block, width, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 2 * width, num_blocks[1], stride=2)
        self.layer3 = self._make_layer(block, 4 * width, num_blocks[2], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.linear = nn.Linear(4 * width * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, num_blocks, stride):
        strides = [stride] + [1] * (num_blocks - 1)
        layers = []
        for stride in strides:
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer1(out)
        out = self.layer2(out)
        out = self.layer3(out)
        out = self.avgpool(out)
        out = torch.flatten(out, 1)
        return self.linear(out)


def make_images(n, size=32, classes=10):
    """Return striped images whose class is the direction and the colour of the stripes."""
    labels = torch.randint(0, classes, (n,))
    axis = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    angle = labels.float() * (math.pi / classes)
    wave = torch.cos(angle)[:, None, None] * xx[None] + torch.sin(angle)[:, None, None] * yy[None]
    phase = torch.rand(n, 1, 1) * 2 * math.pi
    stripes = torch.sin(8 * wave + phase)
    colours = torch.stack([torch.cos(angle), torch.sin(angle), torch.ones_like(angle)], dim=1)
    images = stripes.unsqueeze(1) * colours[:, :, None, None]
    images = images + 0.3 * torch.randn(n, 3, size, size)
    mean = images.mean(dim=(0, 2, 3), keepdim=True)
    std = images.std(dim=(0, 2, 3), keepdim=True)
    return (images - mean) / std, labels


def train(model, loader, criterion, optimizer, scheduler, device, steps, losses):
    """Train for one pass, or until `steps` losses are known; return loss and accuracy."""
    model.train()
    train_loss, correct, total = 0.0, 0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()

        losses.append(loss.item())
        train_loss += loss.item() * targets.size(0)
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        if len(losses) >= steps:
            break
    return train_loss / total, correct / total


def test(model, loader, criterion, device):
    """Return the mean loss and the accuracy."""
    model.eval()
    test_loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = model(inputs)
            loss = criterion(outputs, targets)
            test_loss += loss.item()
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    return test_loss / len(loader), correct / total


def main(steps=96, batch_size=32, seed=0, verbose=False):
    """Train for `steps` batches and test; return losses, accuracies and learning rates."""
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    images, labels = make_images(640)
    trainset = TensorDataset(images[:512], labels[:512])
    testset = TensorDataset(images[512:], labels[512:])
    trainloader = DataLoader(trainset, batch_size=batch_size, shuffle=True, drop_last=True)
    testloader = DataLoader(testset, batch_size=64, shuffle=False)

    net = ResNet(BasicBlock, [1, 1, 1]).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, total_steps=max(steps, 2) + 1
    )

    losses, accuracies, rates = [], [], []
    epoch = 0
    while len(losses) < steps:
        start = time.time()
        loss, accuracy = train(
            net, trainloader, criterion, optimizer, scheduler, device, steps, losses
        )
        accuracies.append(accuracy)
        rates.append(scheduler.get_last_lr()[0])
        if verbose:
            print(f"epoch {epoch}: {loss:.3f}, {accuracy:.1%}, {time.time() - start:.1f} s")
        epoch += 1
    test_loss, test_accuracy = test(net, testloader, criterion, device)
    return {
        "losses": losses,
        "accuracies": accuracies,
        "learning_rates": rates,
        "parameters": sum(p.numel() for p in net.parameters() if p.requires_grad),
        "running_mean": net.bn1.running_mean.tolist(),
        "batches_tracked": net.bn1.num_batches_tracked.item(),
        "test_loss": test_loss,
        "test_accuracy": test_accuracy,
    }


if __name__ == "__main__":
    results = main(verbose=True)
    print(f"test: {results['test_loss']:.3f}, {results['test_accuracy']:.1%}")
