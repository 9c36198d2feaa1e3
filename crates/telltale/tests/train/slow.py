"""A training in which rank 1 computes three times as long as the others."""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, batch):
        time.sleep(0.15 if dist.get_rank() == 1 else 0.05)
        return self.linear(batch)


dist.init_process_group("gloo")
model = DistributedDataParallel(Block())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(60):
    loss = model(torch.randn(8, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
