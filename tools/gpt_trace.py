#!/usr/bin/python3
"""A small GPT on the CPU, to be run under the recorder: it trains, or it generates.

It reads no file but itself (its source is the text it learns) and no network. What matters is not
what it learns but that its memory moves like a real one's: weights, optimizer state, activations
held for the backward pass, and a key/value cache that grows by a token at a time.
"""

import argparse
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit("gpt_trace.py needs PyTorch: apt-get install python3-torch libopenblas0-pthread")


class Attention(nn.Module):
    """Causal self-attention; with a cache it sees only the newest tokens and remembers the rest."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x, cache):
        batch, tokens, width = x.shape
        parts = self.project_in(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:
            key = torch.cat((cache[0], key), dim=2)
            value = torch.cat((cache[1], value), dim=2)
        seen = key.shape[2]
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.ones(tokens, seen, dtype=torch.bool).triu(seen - tokens + 1)
        weights = functional.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, tokens, width)
        return self.project_out(mixed), (key, value)


class Block(nn.Module):
    """Attention and a perceptron, each with its normalisation and a way around it."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.perceptron_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, cache):
        attended, cache = self.attention(self.attention_norm(x), cache)
        x = x + attended
        return x + self.perceptron(self.perceptron_norm(x)), cache


class Gpt(nn.Module):
    """Token and position embeddings, blocks, and a head that shares the token embedding."""

    def __init__(self, symbols, context, layers, width, heads):
        super().__init__()
        self.context = context
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, tokens, caches=None):
        start = 0 if caches is None else caches[0][0].shape[2]
        places = torch.arange(start, start + tokens.shape[1])
        x = self.token(tokens) + self.position(places)
        grown = []
        for index, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[index])
            grown.append(cache)
        return self.norm(x) @ self.token.weight.T, grown


def train(model, text, options):
    """Runs AdamW for the given number of steps and prints the loss of each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(options.steps):
        begun = time.monotonic()
        starts = torch.randint(len(text) - options.context - 1, (options.batch,))
        rows = torch.stack([text[start : start + options.context + 1] for start in starts])
        logits, _ = model(rows[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        took = time.monotonic() - begun
        print(f"step {step + 1} loss {loss.item():.3f} in {took:.2f} s", flush=True)


@torch.no_grad()
def generate(model, text, symbols, options):
    """Continues the text token by token until the context is full, keeping keys and values."""
    tokens = text[: options.prompt].repeat(options.batch, 1)
    logits, caches = model(tokens)
    written = []
    for _ in range(options.context - options.prompt):
        chances = functional.softmax(logits[:, -1], dim=-1)
        newest = torch.multinomial(chances, 1)
        written.append(symbols[newest[0, 0]])
        logits, caches = model(newest, caches)
    print(f"{len(written)} tokens: {''.join(written)[:60]!r}", flush=True)


def main():
    """Parses the arguments and does what they say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["train", "generate"])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=12, help="training steps")
    parser.add_argument("--prompt", type=int, default=32, help="tokens given before generating")
    options = parser.parse_args()

    torch.manual_seed(1)
    with open(__file__, encoding="utf-8") as source:
        characters = source.read()
    symbols = sorted(set(characters))
    text = torch.tensor([symbols.index(character) for character in characters])
    shape = (options.context, options.layers, options.width, options.heads)
    model = Gpt(len(symbols), *shape)
    weights = sum(weight.numel() for weight in model.parameters())
    print(f"{weights} weights, {torch.get_num_threads()} thread(s)", flush=True)
    if options.mode == "train":
        train(model, text, options)
    else:
        generate(model, text, symbols, options)


if __name__ == "__main__":
    main()
