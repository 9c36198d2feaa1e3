"""A training with PyTorch and Gloo that tells when it was started and when its first step was done.

Nothing in it is of Telltale or of torchrun. Times are of CLOCK_MONOTONIC, so that who reads them can
compare them with its own."""

import os
import sys
import time


def tell(event):
    # One write each, appended, so that ranks do not get into each other's lines.
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    words = event, os.environ["RANK"], attempt, os.getpid(), time.monotonic_ns()
    line = " ".join(str(word) for word in words) + "\n"
    file = os.open(os.environ["TOLD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


tell("started")

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parent = os.getppid()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while os.getppid() == parent:
        generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
        inputs = torch.randn(8, 16, generator=generator)
        loss = (parallel(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 0:
            tell("stepped")
        step += 1
        time.sleep(float(os.environ["REST"]))
    sys.exit(1)


main()
