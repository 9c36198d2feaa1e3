"""A training as a user writes it: PyTorch's DistributedDataParallel with a checkpoint, and not a word
of Telltale. Prints a line for each step, so that tests see how far it is."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "60"))
REST = float(os.environ.get("REST", "0.1"))
# What a step computes besides, in products of matrices, and what each pair of ranks exchanges after it.
PRODUCTS = int(os.environ.get("PRODUCTS", "0"))
EXCHANGED = int(os.environ.get("EXCHANGED", "0"))
CHECKPOINT = os.environ["STATE"] + "/checkpoint.pt"


def compute():
    matrix = torch.full((256, 256), 1 / 256)
    for _ in range(PRODUCTS):
        matrix = matrix @ matrix


def exchange(rank, size):
    """Pair by pair, all pairs of a round at once, as experts are given their tokens."""
    given = torch.ones(EXCHANGED)
    taken = torch.empty(EXCHANGED)
    for distance in range(1, size):
        dist.barrier()
        giving = dist.isend(given, rank ^ distance)
        dist.recv(taken, rank ^ distance)
        giving.wait()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    print("pid", os.getpid(), "rank", rank, flush=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first = 0
    if os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        first = saved["step"]
    print("resumes from", first, flush=True)
    parallel = DistributedDataParallel(model)
    loss = torch.zeros(())
    for step in range(first, STEPS):
        inputs = torch.randn(8, 16, generator=torch.Generator().manual_seed(step * size + rank))
        compute()
        loss = (parallel(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if EXCHANGED:
            exchange(rank, size)
        print("step", step, time.time(), flush=True)
        if rank == 0 and step % 5 == 4:
            torch.save({"model": model.state_dict(), "step": step + 1}, CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
        time.sleep(REST)
    dist.barrier()
    weights = [weight.hex() for weight in model.weight[0].tolist()]
    print("weights", *weights, "loss", loss.item().hex(), flush=True)


main()
