"""A training as people write it: a model in DistributedDataParallel, a DataLoader with two processes, and at
SIGTERM a checkpoint of model and optimizer after the step at hand, by renaming. It knows nothing of Telltale."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

CHECKPOINT = os.environ["STATE"] + "/checkpoint.pt"
asked = False


class Samples(Dataset):
    def __init__(self, first, rank, size):
        self.first, self.rank, self.size = first, rank, size

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        seed = (2 * self.first + index) * self.size + self.rank
        inputs = torch.randn(16, generator=torch.Generator().manual_seed(seed))
        return inputs, inputs.sum().reshape(1)


def ask(signum, frame):
    global asked
    asked = True


def fingerprint(model, optimizer):
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    return sum(tensor.double().sum().item() for tensor in [*model.parameters(), *moments]).hex()


def main():
    signal.signal(signal.SIGTERM, ask)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    first = 0
    if os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    print("pid", os.getpid(), "resumes from", first, fingerprint(model, optimizer), flush=True)
    parallel = DistributedDataParallel(model)
    loader = iter(DataLoader(Samples(first, rank, size), batch_size=2, num_workers=2))
    for step in range(first, 1 << 20):
        inputs, targets = next(loader)
        optimizer.zero_grad()
        (parallel(inputs) - targets).pow(2).mean().backward()
        optimizer.step()
        stops = torch.tensor(int(asked))
        dist.all_reduce(stops, dist.ReduceOp.MAX)
        if stops:
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({"step": step + 1, **state}, CHECKPOINT + ".new")
                os.replace(CHECKPOINT + ".new", CHECKPOINT)
            # The other ranks stay until the checkpoint is there.
            dist.barrier()
            print("saved", step + 1, fingerprint(model, optimizer), flush=True)
            sys.exit(0)
        print("step", step, flush=True)


main()
