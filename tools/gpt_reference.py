#!/usr/bin/python3
"""The first losses of the GPT of crates/gpt as PyTorch computes them, in double precision.

Model, initial weights, batches and optimiser are rewritten here from their description in
crates/gpt/src: gradients come from autograd, AdamW is PyTorch's own. What both sides must agree on
is in the output, so that the test reads sizes and text from there.

    tools/gpt_reference.py > crates/gpt/tests/reference/losses.txt
"""

import math

import numpy
import torch
import torch.nn.functional as functional

SIZES = {"layers": 2, "heads": 2, "width": 32, "context": 16, "batch": 3}
SEED = 42
STEPS = 30
TOKENS = 96
TEXT = " ".join(["a ledger tells what each process holds on each chip; nobody asks, nothing waits."] * 3)

WINDOWS_STREAM = 0
EMBEDDING_BOUND = numpy.float32(0.034641016)
LEARNING_RATE, WARM_UP_STEPS = 3e-3, 20
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.99), 1e-8, 0.01

torch.set_default_dtype(torch.float64)


def mix(number):
    """The finaliser of SplitMix64, on numbers below 2**64."""
    mask = (1 << 64) - 1
    mixed = (number + 0x9E3779B97F4A7C15) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return mixed ^ (mixed >> 31)


def bits(stream, place):
    mask = (1 << 64) - 1
    return mix((mix((mix(SEED) + stream) & mask) + place) & mask)


def initial(number, shape, bound):
    """Numbers in single precision, as the other side has them."""
    units = [((bits(number + 1, place) >> 40) - 8388608) / 8388608 for place in range(math.prod(shape))]
    values = numpy.array(units, dtype=numpy.float32) * numpy.float32(bound)
    return torch.tensor(values.astype(numpy.float64)).reshape(shape)


class Model:
    def __init__(self):
        self.all = []
        width = SIZES["width"]
        share = numpy.float32(1) / numpy.sqrt(numpy.float32(2 * SIZES["layers"]))
        self.tokens = self.evenly((TOKENS, width), EMBEDDING_BOUND)
        self.positions = self.evenly((SIZES["context"], width), EMBEDDING_BOUND)
        self.layers = [
            {
                "attention_norm": self.norm(),
                "attention_input": self.linear(width, 3 * width, 1),
                "attention_output": self.linear(width, width, share),
                "feed_norm": self.norm(),
                "feed_input": self.linear(width, 4 * width, 1),
                "feed_output": self.linear(4 * width, width, share),
            }
            for _ in range(SIZES["layers"])
        ]
        self.last_norm = self.norm()

    def weight(self, values):
        self.all.append(values.requires_grad_())
        return values

    def evenly(self, shape, bound):
        return self.weight(initial(len(self.all), shape, bound))

    def norm(self):
        width = SIZES["width"]
        return self.weight(torch.ones(width)), self.weight(torch.zeros(width))

    def linear(self, inputs, outputs, share):
        bound = numpy.sqrt(numpy.float32(3) / numpy.float32(inputs)) * numpy.float32(share)
        return self.evenly((inputs, outputs), bound), self.weight(torch.zeros(outputs))

    def attention(self, layer, rows):
        batch, context, width = rows.shape
        matrix, bias = layer["attention_input"]
        heads = SIZES["heads"]
        parts = (rows @ matrix + bias).reshape(batch, context, 3, heads, width // heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(width // heads)
        hidden = torch.ones(context, context, dtype=torch.bool).triu(1)
        found = scores.masked_fill(hidden, -math.inf).softmax(-1) @ values
        matrix, bias = layer["attention_output"]
        return found.transpose(1, 2).reshape(batch, context, width) @ matrix + bias

    def feed(self, layer, rows):
        matrix, bias = layer["feed_input"]
        wide = functional.gelu(rows @ matrix + bias, approximate="tanh")
        matrix, bias = layer["feed_output"]
        return wide @ matrix + bias

    def loss(self, inputs, targets):
        norm = lambda weights, rows: functional.layer_norm(rows, rows.shape[-1:], *weights, 1e-5)
        rows = self.tokens[inputs] + self.positions
        for layer in self.layers:
            rows = rows + self.attention(layer, norm(layer["attention_norm"], rows))
            rows = rows + self.feed(layer, norm(layer["feed_norm"], rows))
        logits = norm(self.last_norm, rows) @ self.tokens.T
        return functional.cross_entropy(logits.reshape(-1, TOKENS), targets.reshape(-1))


def batch(step):
    tokens = [ord(character) - ord(" ") + 1 for character in TEXT]
    window = SIZES["context"] + 1
    starts = [
        bits(WINDOWS_STREAM, step * SIZES["batch"] + row) % (len(tokens) + 1 - window)
        for row in range(SIZES["batch"])
    ]
    windows = torch.tensor([tokens[start:start + window] for start in starts])
    return windows[:, :-1], windows[:, 1:]


def main():
    model = Model()
    decaying = [weight for weight in model.all if weight.dim() > 1]
    others = [weight for weight in model.all if weight.dim() == 1]
    groups = [{"params": decaying, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)
    print("# The first losses of the GPT in crates/gpt as PyTorch computes them in double precision.")
    print(f"# Made by tools/gpt_reference.py with PyTorch {torch.__version__}.")
    for name, size in SIZES.items():
        print(f"{name} {size}")
    print(f"seed {SEED}")
    print(f"text {TEXT}")
    for step in range(STEPS):
        loss = model.loss(*batch(step))
        optimiser.zero_grad()
        loss.backward()
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(step + 1, WARM_UP_STEPS) / WARM_UP_STEPS
        optimiser.step()
        print(f"loss {loss.item():.12f}")


main()
