"""A training as a user writes it: PyTorch's DistributedDataParallel with a checkpoint, and not a word
of Telltale. Prints a line for each step, so that tests see how far it is."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "60"))
CHECKPOINT = os.environ["STATE"] + "/checkpoint.pt"


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
    for step in range(first, STEPS):
        inputs = torch.randn(8, 16, generator=torch.Generator().manual_seed(step * size + rank))
        loss = (parallel(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, time.time(), flush=True)
        if rank == 0 and step % 5 == 4:
            torch.save({"model": model.state_dict(), "step": step + 1}, CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
        time.sleep(float(os.environ.get("REST", "0.1")))
    dist.barrier()
    print("weights", [round(weight, 5) for weight in model.weight[0].tolist()[:4]], flush=True)


main()
