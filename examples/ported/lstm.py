"""An LSTM language model: packed sequences of sentences, then one long text in pieces."""

import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2


def make_sentences(n, seed):
    """Return sentences of a small grammar with clauses of random depth, as lists of words."""
    rng = random.Random(seed)
    nouns = ["dog", "cat", "girl", "boy", "bird"]
    verbs = ["sees", "hears", "chases", "likes"]

    def clause(depth):
        words = ["the", rng.choice(nouns)]
        if depth < 3 and rng.random() < 0.4:
            words += ["that", rng.choice(verbs), *clause(depth + 1)]
        return words

    return [[*clause(0), rng.choice(verbs), *clause(0), "."] for _ in range(n)]


class Vocabulary:
    """The words of some sentences, by number."""

    def __init__(self, sentences):
        words = sorted({word for sentence in sentences for word in sentence})
        self.words = ["<pad>", "<bos>", "<eos>", *words]
        self.index = {word: i for i, word in enumerate(self.words)}

    def encode(self, sentence):
        return [BOS, *(self.index[word] for word in sentence), EOS]

    def __len__(self):
        return len(self.words)


class Sentences(Dataset):
    """Sentences as tensors of numbers."""

    def __init__(self, sentences, vocabulary):
        self.items = [torch.tensor(vocabulary.encode(s), dtype=torch.long) for s in sentences]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    """Return padded inputs, padded targets and the lengths."""
    lengths = torch.tensor([len(item) - 1 for item in batch])
    inputs = pad_sequence([item[:-1] for item in batch], batch_first=True, padding_value=PAD)
    targets = pad_sequence([item[1:] for item in batch], batch_first=True, padding_value=PAD)
    return inputs, targets, lengths


class LSTMLanguageModel(nn.Module):
    """Embedding, LSTM and a linear layer to the vocabulary."""

    def __init__(self, vocab_size, embed_dim=64, hidden_dim=96, num_layers=2, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim, padding_idx=PAD)
        self.lstm = nn.LSTM(
            embed_dim, hidden_dim, num_layers=num_layers, batch_first=True, dropout=dropout
        )
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(hidden_dim, vocab_size)
        self.init_weights()

    def init_weights(self):
        for name, param in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(param)
            elif "bias" in name:
                nn.init.zeros_(param)
                n = param.size(0)
                param.data[n // 4 : n // 2].fill_(0.5)
        nn.init.uniform_(self.fc.weight, -0.1, 0.1)
        nn.init.constant_(self.fc.bias, 0.0)

    def forward(self, x, lengths=None, hidden=None):
        emb = self.dropout(self.embedding(x))
        if lengths is not None:
            packed = pack_padded_sequence(
                emb, lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            packed, hidden = self.lstm(packed, hidden)
            out, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.size(1))
        else:
            out, hidden = self.lstm(emb, hidden)
        return self.fc(self.dropout(out)), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        shape = (self.lstm.num_layers, batch_size, self.lstm.hidden_size)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def repackage_hidden(h):
    """Return the hidden state without its history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def evaluate(model, loader, criterion):
    """Return the perplexity and the accuracy of the next word, padding left out."""
    model.eval()
    total, words, correct = 0.0, 0, 0
    with torch.no_grad():
        for inputs, targets, lengths in loader:
            logits, _ = model(inputs, lengths)
            count = (targets != PAD).sum().item()
            total += (
                criterion(logits.reshape(-1, logits.size(-1)), targets.reshape(-1)).item() * count
            )
            words += count
            mask = targets.ne(PAD)
            correct += logits.argmax(-1).eq(targets).masked_select(mask).sum().item()
    return math.exp(total / words), correct / words


def batchify(ids, batch_size):
    """Return a long text as `batch_size` columns."""
    nbatch = ids.size(0) // batch_size
    return ids.narrow(0, 0, nbatch * batch_size).view(batch_size, -1).t().contiguous()


def train_text(model, source, steps, bptt=16, clip=0.25):
    """Continue training on one long text with a carried hidden state; return the losses."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    hidden = model.init_hidden(source.size(1))
    losses = []
    for i in range(0, source.size(0) - 1, bptt):
        if len(losses) == steps:
            break
        seq_len = min(bptt, len(source) - 1 - i)
        data = source[i : i + seq_len].t()
        targets = source[i + 1 : i + 1 + seq_len].t()
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        logits, hidden = model(data, hidden=hidden)
        loss = F.cross_entropy(logits.transpose(1, 2), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def generate(model, vocabulary, max_length=12):
    """Return the likeliest words after the start of a sentence."""
    model.eval()
    token = torch.tensor([[BOS]])
    hidden, words = None, []
    for _ in range(max_length):
        logits, hidden = model(token, hidden=hidden)
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        if token.item() == EOS:
            break
        words.append(vocabulary.words[token.item()])
    return " ".join(words)


def main(steps=150, batch_size=32, seed=5, clip=1.0):
    """Train on sentences, then on running text; return the losses and the perplexity."""
    torch.manual_seed(seed)
    train_sentences, test_sentences = make_sentences(1024, seed), make_sentences(128, seed + 1)
    vocabulary = Vocabulary(train_sentences + test_sentences)
    train_loader = DataLoader(
        Sentences(train_sentences, vocabulary),
        batch_size=batch_size,
        shuffle=True,
        collate_fn=collate,
        drop_last=True,
    )
    test_loader = DataLoader(
        Sentences(test_sentences, vocabulary), batch_size=64, collate_fn=collate
    )
    model = LSTMLanguageModel(len(vocabulary))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    losses, norms, perplexity = [], [], None
    while len(losses) < steps:
        model.train()
        for inputs, targets, lengths in train_loader:
            optimizer.zero_grad()
            logits, _ = model(inputs, lengths)
            loss = criterion(logits.view(-1, logits.size(-1)), targets.view(-1))
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).item())
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
        perplexity, accuracy = evaluate(model, test_loader, criterion)
        scheduler.step(perplexity)

    text = [i for sentence in train_sentences for i in vocabulary.encode(sentence)[1:]]
    source = batchify(torch.tensor(text, dtype=torch.long), batch_size)
    return {
        "losses": losses,
        "largest_norm": max(norms),
        "perplexity": perplexity,
        "accuracy": accuracy,
        "text_losses": train_text(model, source, steps // 5 + 1),
        "sentence": generate(model, vocabulary),
    }


if __name__ == "__main__":
    results = main()
    print(f"first loss {results['losses'][0]:.3f}, last loss {results['losses'][-1]:.3f}")
    print(f"perplexity {results['perplexity']:.2f}: {results['sentence']}")
