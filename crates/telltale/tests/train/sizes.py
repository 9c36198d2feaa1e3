"""A training in which rank 1 once passes a shorter tensor than the others, as with an uneven last batch."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(1000):
    time.sleep(0.05)
    is_short = step == 20 and dist.get_rank() == 1
    dist.all_reduce(torch.ones(1 if is_short else 8))
