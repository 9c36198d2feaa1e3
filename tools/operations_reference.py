#!/usr/bin/python3
"""Makes the reference data of crates/operations/tests/reference/ with PyTorch.

Each file is one case of an operation. Its first line names the operation and its parameters, then
follow lines `tensor NAME FORMAT DIM…`, then an empty line, then the numbers of all tensors in that
order, little-endian: u32, f32, or bf16 where that holds every number exactly. Results are computed in double precision and rounded once, so a
test's relative error is its own. Inputs are rounded to bfloat16, so one file serves both formats.

    tools/operations_reference.py [DIRECTORY]
"""

import pathlib
import sys

import numpy
import torch
import torch.nn.functional as functional

SEED = 20_260_101
DEFAULT_DIRECTORY = pathlib.Path(__file__).parent.parent / "crates/operations/tests/reference"

torch.manual_seed(SEED)
torch.set_default_dtype(torch.float64)


def values(*shape, low=-2.0, high=2.0):
    """Numbers that bfloat16 holds exactly."""
    numbers = torch.rand(shape) * (high - low) + low
    return numbers.to(torch.bfloat16).to(torch.float64).requires_grad_()


def packed(tensor):
    if not tensor.is_floating_point():
        return "u32", tensor.numpy().astype(numpy.uint32)
    single = tensor.numpy().astype(numpy.float32)
    halves = (single.view(numpy.uint32) >> 16).astype(numpy.uint16)
    exact = (single.view(numpy.uint32) & 0xFFFF == 0).all()
    return ("bf16", halves) if exact else ("f32", single)


def write(directory, name, line, tensors):
    header, body = [line], b""
    for key, tensor in tensors.items():
        form, array = packed(tensor.detach())
        dimensions = " ".join(str(size) for size in array.shape)
        header.append(f"tensor {key} {form} {dimensions}".rstrip())
        body += array.tobytes()
    (directory / f"{name}.bin").write_bytes("\n".join(header).encode() + b"\n\n" + body)


def unary(directory):
    functions = {
        "negate": (lambda x: -x, -2, 2),
        "exponential": (torch.exp, -20, 20),
        "logarithm": (torch.log, 0.01, 50),
        "square_root": (torch.sqrt, 0, 50),
        "reciprocal_root": (torch.rsqrt, 0.01, 50),
        "relu": (torch.relu, -2, 2),
        "gelu": (lambda x: functional.gelu(x, approximate="tanh"), -6, 6),
        "tanh": (torch.tanh, -6, 6),
        "sigmoid": (torch.sigmoid, -20, 20),
        "scale": (lambda x: x * 0.375, -2, 2),
        "shift": (lambda x: x + 0.375, -2, 2),
    }
    for name, (function, low, high) in functions.items():
        x = values(33, 35, low=low, high=high)
        write(directory, f"unary_{name}", f"unary {name} 0.375", {"x": x, "y": function(x)})


def binary(directory):
    shapes = [((2, 33, 35), (2, 33, 35)), ((2, 33, 35), (35,)), ((2, 33, 35), (33, 1)),
              ((1, 3, 1, 40), (2, 1, 5, 40)), ((7,), ())]
    functions = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul,
                 "divide": torch.div, "maximum": torch.maximum}
    for name, function in functions.items():
        for number, (left, right) in enumerate(shapes if name == "add" else shapes[2:4]):
            low = 0.5 if name == "divide" else -2
            a, b = values(*left), values(*right, low=low)
            write(directory, f"binary_{name}_{number}", f"binary {name}",
                  {"a": a, "b": b, "y": function(a, b)})
    x, slope = values(5, 70, low=-4, high=4), values(5, 70)
    for name, forward in {"gelu_slope": lambda x: functional.gelu(x, approximate="tanh"),
                          "relu_slope": torch.relu}.items():
        (y,) = torch.autograd.grad(forward(x), x, slope)
        write(directory, f"binary_{name}", f"binary {name}", {"a": x, "b": slope, "y": y})


def matmul(directory):
    cases = [((5, 7), (7, 3)), ((32, 32), (32, 32)), ((70, 65), (65, 97)), ((1, 300), (300, 5)),
             ((3, 33, 40), (40, 50)), ((2, 3, 17, 20), (2, 3, 20, 33)), ((2, 1, 8, 16), (3, 16, 8))]
    for number, (left, right) in enumerate(cases):
        a, b, bias = values(*left), values(*right), values(right[-1])
        product = a @ b
        tensors = {"a": a, "b": b, "y": product}
        if product.numel() < 1000:
            tensors.update({"bias": bias, "y_bias": product + bias})
        write(directory, f"matmul_{number}", "matmul", tensors)


def reduce(directory):
    x = values(2, 2, 35, 33)
    for dimension in range(4):
        write(directory, f"reduce_{dimension}", f"reduce {dimension}",
              {"x": x, "sum": x.sum(dimension, keepdim=True),
               "mean": x.mean(dimension, keepdim=True),
               "maximum": x.amax(dimension, keepdim=True)})


def softmax(directory):
    for name, causal in {"plain": False, "causal": True}.items():
        x, slope = values(2, 35, 41, low=-6, high=6), values(2, 35, 41)
        scaled = x * 0.25
        if causal:
            mask = torch.ones(35, 41, dtype=torch.bool).tril(41 - 35)
            scaled = scaled.masked_fill(~mask, float("-inf"))
        y = torch.softmax(scaled, -1)
        y_single = y.to(torch.float32).to(torch.float64)
        inner = (y_single * slope).sum(-1, keepdim=True)
        write(directory, f"softmax_{name}", f"softmax {name} 0.25",
              {"x": x, "slope": slope, "y": y, "dx": y_single * (slope - inner) * 0.25})


def layer_norm(directory):
    for number, shape in enumerate([(5, 64), (2, 33, 45)]):
        x, gamma, beta = values(*shape), values(shape[-1]), values(shape[-1])
        slope = values(*shape)
        y = functional.layer_norm(x, (shape[-1],), gamma, beta, 1e-5)
        dx, dgamma, dbeta = torch.autograd.grad(y, (x, gamma, beta), slope)
        write(directory, f"layer_norm_{number}", "layer_norm 0.00001",
              {"x": x, "gamma": gamma, "beta": beta, "slope": slope, "y": y,
               "dx": dx, "dgamma": dgamma, "dbeta": dbeta})


def embedding(directory):
    for number, (tokens, rows, width) in enumerate([((2, 19), 70, 40), ((45,), 13, 33)]):
        table, slope = values(rows, width), values(*tokens, width)
        index = torch.randint(0, rows, tokens)
        y = functional.embedding(index, table)
        (dtable,) = torch.autograd.grad(y, table, slope)
        write(directory, f"embedding_{number}", "embedding",
              {"tokens": index, "table": table, "slope": slope, "y": y, "dtable": dtable})


def movement(directory):
    x = values(2, 3, 35, 34)
    for order in ["0213", "0132", "3102", "2310"]:
        write(directory, f"permute_{order}", f"permute {' '.join(order)}",
              {"x": x, "y": x.permute(*(int(digit) for digit in order))})
    write(directory, "slice", "slice 0 2 1 3 5 33 7 34",
          {"x": x, "y": x[0:2, 1:3, 5:33, 7:34]})
    write(directory, "reshape", "reshape", {"x": x, "y": x.reshape(7, 34, 30)})
    small = values(2, 5, 33)
    write(directory, "repeat", "repeat 2 3 2", {"x": small, "y": small.repeat(2, 3, 2)})
    for axis, other in enumerate([(1, 3, 35), (2, 4, 35), (2, 3, 10)]):
        a, b = values(2, 3, 35), values(*other)
        write(directory, f"concat_{axis}", f"concat {axis}",
              {"a": a, "b": b, "y": torch.cat([a, b], axis)})


def cross_entropy(directory):
    for number, (shape, columns) in enumerate([((2, 19), 65), ((70,), 33)]):
        logits = values(*shape, columns, low=-6, high=6)
        targets = torch.randint(0, columns, shape)
        loss = functional.cross_entropy(logits.reshape(-1, columns), targets.reshape(-1))
        (slope,) = torch.autograd.grad(loss, logits)
        write(directory, f"cross_entropy_{number}", "cross_entropy",
              {"logits": logits, "targets": targets, "loss": loss.reshape(1), "dlogits": slope})


def adamw(directory):
    parameter, slopes = values(33, 45), [values(33, 45) for _ in range(3)]
    live = parameter.detach().clone().requires_grad_()
    optimizer = torch.optim.AdamW([live], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for slope in slopes:
        live.grad = slope.detach()
        optimizer.step()
    tensors = {"parameter": parameter, "result": live}
    tensors.update({f"slope_{step}": slope for step, slope in enumerate(slopes)})
    write(directory, "adamw", "adamw 0.01 0.9 0.95 0.00000001 0.1", tensors)


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    for make in [unary, binary, matmul, reduce, softmax, layer_norm, embedding, movement,
                 cross_entropy, adamw]:
        make(directory)


if __name__ == "__main__":
    main()
