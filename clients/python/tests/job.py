"""One rank of a job that uses what the shim looks at. Started by the tests with an agent's variables."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 40


def transfers(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    sent, received = torch.full((256,), float(rank)), torch.zeros(256)
    for _ in range(STEPS):
        if rank % 2:
            dist.recv(received, before)
            dist.send(sent, after)
        else:
            dist.send(sent, after)
            dist.recv(received, before)
    assert received[0] == before
    for _ in range(STEPS):
        works = [dist.isend(sent, after), dist.irecv(received, before)]
        for work in works:
            work.wait()
    for _ in range(STEPS):
        operations = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, received, before)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()


def waits(rank, size):
    """Transfers of 1,024 numbers right after the ranks have met, and of 8,192 when they have not."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for numbers, meet in ((1024, dist.barrier), (8192, lambda: None)):
        sent, received = torch.ones(numbers), torch.zeros(numbers)
        for _ in range(STEPS):
            meet()
            work = dist.isend(sent, after)
            dist.recv(received, before)
            work.wait()


def collectives(rank, size):
    tensor = torch.ones(1024)
    for _ in range(STEPS):
        dist.all_reduce(tensor)
        tensor /= size
        dist.all_reduce(tensor, async_op=True).wait()
        tensor /= size
    assert torch.equal(tensor, torch.ones(1024))
    dist.broadcast(tensor, 0)
    parts = [torch.zeros(1024) for _ in range(size)]
    dist.all_gather(parts, tensor)
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    assert objects == list(range(size))
    dist.barrier()


def groups(rank, size):
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    own = pairs[rank // 2]
    tensor = torch.ones(4)
    for _ in range(STEPS):
        dist.all_reduce(tensor, group=own)
    peer = rank + 1 if rank % 2 == 0 else rank - 1
    for _ in range(STEPS):
        if rank % 2:
            dist.recv(tensor, peer, group=own)
        else:
            dist.send(tensor, peer, group=own)


def gradients(rank, size):
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync() if step % 10 == 9 else _nothing():
            model(torch.randn(8, 64)).sum().backward()
        optimizer.step()


class Slow(torch.nn.Module):
    """A layer that takes 60 ms on rank 1."""

    def __init__(self, rank):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
        self.rank = rank

    def forward(self, numbers):
        if self.rank == 1:
            time.sleep(0.06)
        return self.layer(numbers)


def slow(rank, size):
    """Rank 0 is slow between passes and rank 1 in its forward pass, and each waits for the other: in
    the sums of gradients, and for the buffers that rank 0 sends when the forward pass begins."""
    layers = [torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), Slow(rank)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(10):
        if rank == 0:
            with compute("data"):
                time.sleep(0.04)
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()


def compute(name):
    if "telltale_ccl" not in sys.modules:
        return _nothing()
    import telltale_ccl

    return telltale_ccl.compute(name)


def _nothing():
    import contextlib

    return contextlib.suppress()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for part in sys.argv[1].split(","):
        globals()[part](rank, size)
    dist.barrier()
    if "telltale_ccl" in sys.modules:
        import json

        import telltale_ccl

        assert telltale_ccl.flush(10)
        print(json.dumps(telltale_ccl.counts()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
