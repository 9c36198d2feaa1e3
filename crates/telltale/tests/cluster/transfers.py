"""Ranks that only send and receive, as a user writes it: no collective, and no word of Telltale. PATTERN says
who talks to whom: `ring` (send to the next, receive from the one before), or `pairs` (each with each).
Prints a line for each step, so that tests see how far it is."""

import os
import time

import torch
import torch.distributed as dist

REST = float(os.environ.get("REST", "0.02"))
GIVEN = torch.ones(16384)


def ring(rank, size):
    giving = dist.isend(GIVEN, (rank + 1) % size)
    dist.recv(torch.empty_like(GIVEN), (rank - 1) % size)
    giving.wait()


def pairs(rank, size):
    for distance in range(1, size):
        giving = dist.isend(GIVEN, rank ^ distance)
        dist.recv(torch.empty_like(GIVEN), rank ^ distance)
        giving.wait()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    step = {"ring": ring, "pairs": pairs}[os.environ["PATTERN"]]
    for number in range(10**9):
        step(rank, size)
        print("step", number, time.time(), flush=True)
        time.sleep(REST)


main()
