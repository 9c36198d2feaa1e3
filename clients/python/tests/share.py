"""What the shim costs a training step, by its own timers: one rank of a small data-parallel job.

Started as `job.py` is, for each rank, with an agent to post to. Prints the share of the process's
CPU time, over steps of about the length that is asked for; and beside it what the kernel says of the
job's thread, in blocks of steps with the shim and without it in turn.
"""

import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

# The first steps all have spans; of the later ones those that are short do not.
WARM_UP = 100
STEPS = 400
BLOCKS, BLOCK = 40, 20
WIDTH = int(sys.argv[1]) if len(sys.argv) > 1 else 512
WRAPPED = "__telltale_ccl__"


class Shim:
    """What the shim has put in the way, which can be taken out and put back."""

    def __init__(self):
        places = [(dist, name) for name in ("all_reduce", "isend", "irecv")]
        places += [(DistributedDataParallel, "forward"), (dist.distributed_c10d.Work, "wait")]
        places += [(torch.nn.Module, "__call__"), (torch.autograd, "backward")]
        places += [(torch.optim.SGD, "step")]
        places += [(DistributedDataParallel, "_distributed_broadcast_coalesced")]
        places = [(place, name, getattr(place, name)) for place, name in places]
        # Some are left alone with `TELLTALE_CCL_SPANS=0`.
        self.places = [place for place in places if hasattr(place[2], WRAPPED)]

    def put(self, is_there):
        for place, name, wrapper in self.places:
            setattr(place, name, wrapper if is_there else getattr(wrapper, WRAPPED))


def thread_cpu_us():
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return 1e6 * (used.ru_utime + used.ru_stime)


def job(rank, size):
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    examples, part = torch.randn(64, WIDTH), torch.zeros(WIDTH)

    def step():
        optimizer.zero_grad()
        loss = model(examples).square().mean()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
        # As a pipeline hands on what it has computed.
        works = [dist.isend(part, (rank + 1) % size), dist.irecv(part.clone(), (rank - 1) % size)]
        for work in works:
            work.wait()

    return step


def with_and_without(step):
    """The CPU time that the job's thread needs for a step more with the shim than without."""
    shim, more_us = Shim(), []
    for _ in range(BLOCKS):
        used_us = []
        for is_there in (True, False):
            shim.put(is_there)
            step()
            before_us = thread_cpu_us()
            for _ in range(BLOCK):
                step()
            used_us.append(thread_cpu_us() - before_us)
        more_us.append((used_us[0] - used_us[1]) / BLOCK)
    shim.put(True)
    return statistics.median(more_us)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    step = job(rank, size)
    for _ in range(WARM_UP):
        step()
    import telltale_ccl

    before, cpu, wall = telltale_ccl.counts(), time.process_time(), time.monotonic()
    for _ in range(STEPS):
        step()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    telltale_ccl.flush(5)
    after = telltale_ccl.counts()
    own = {name: after[name] - before[name] for name in after}
    seconds = own["overhead_seconds"] + own["sender_cpu_seconds"]
    print(json.dumps({
        "rank": rank,
        "step_cpu_ms": 1000 * cpu / STEPS,
        "step_wall_ms": 1000 * wall / STEPS,
        "operations_a_step": own["reported"] / STEPS,
        "on_job_threads_us": 1e6 * own["overhead_seconds"] / STEPS,
        "on_own_thread_us": 1e6 * own["sender_cpu_seconds"] / STEPS,
        "share_of_cpu": seconds / cpu,
        "more_by_rusage_us": with_and_without(step),
        "dropped": own["dropped"],
    }), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
