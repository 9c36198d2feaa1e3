"""A training in which rank 1 does not come to one collective."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
values = torch.ones(4)
for step in range(1000):
    time.sleep(0.05)
    if step == 20 and dist.get_rank() == 1:
        time.sleep(3600)
    dist.all_reduce(values)
