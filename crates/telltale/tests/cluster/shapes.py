"""Trainings of four ranks as users write them, by how ranks depend on each other, and not a word of Telltale."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH = 256
ROWS = 128
MICRO_BATCHES = 4


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(3)]
        self.layers = torch.nn.Sequential(*(one for layer in layers for one in layer))

    def forward(self, rows):
        return self.layers(rows)


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.001)


def learn(model):
    model(torch.randn(2 * ROWS, WIDTH)).pow(2).mean().backward()


def ddp(rank, size):
    model = DistributedDataParallel(Block())
    optimizer = optimizer_of(model)
    while True:
        optimizer.zero_grad()
        learn(model)
        optimizer.step()
        yield


def pipeline(rank, size):
    model = Block()
    optimizer = optimizer_of(model)
    while True:
        optimizer.zero_grad()
        passed, requests = [], []
        for _ in range(MICRO_BATCHES):
            if rank == 0:
                taken = torch.randn(ROWS, WIDTH)
            else:
                taken = torch.empty(ROWS, WIDTH)
                dist.irecv(taken, rank - 1).wait()
                taken.requires_grad_()
            given = model(taken)
            passed.append((taken, given))
            if rank < size - 1:
                requests.append(dist.isend(given.detach(), rank + 1))
        for taken, given in passed:
            if rank == size - 1:
                given.pow(2).mean().backward()
            else:
                gradient = torch.empty(ROWS, WIDTH)
                dist.irecv(gradient, rank + 1).wait()
                given.backward(gradient)
            if rank > 0:
                requests.append(dist.isend(taken.grad, rank - 1))
        for request in requests:
            request.wait()
        optimizer.step()
        yield


def exchange(to, source):
    given, taken = torch.randn(ROWS, WIDTH), torch.empty(ROWS, WIDTH)
    giving = dist.isend(given, to)
    dist.recv(taken, source)
    giving.wait()


def pairs(rank, size):
    model = Block()
    optimizer = optimizer_of(model)
    while True:
        optimizer.zero_grad()
        learn(model)
        for distance in range(1, size):
            exchange(rank ^ distance, rank ^ distance)
        optimizer.step()
        yield


def ring(rank, size):
    model = Block()
    optimizer = optimizer_of(model)
    while True:
        optimizer.zero_grad()
        learn(model)
        for _ in range(size - 1):
            exchange((rank + 1) % size, (rank - 1) % size)
        optimizer.step()
        yield


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    print("pid", os.getpid(), "rank", rank, flush=True)
    torch.manual_seed(0)
    for step, _ in enumerate(globals()[os.environ["SHAPE"]](rank, size)):
        print("step", step, flush=True)


main()
