"""What the shim costs a training step, by its own timers: one rank of a small data-parallel job.

Started as `job.py` is, for each rank, with an agent to post to. Prints the share of the process's
CPU time, over steps of about the length that is asked for.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 200
WIDTH = int(sys.argv[1]) if len(sys.argv) > 1 else 512


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
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

    for _ in range(10):
        step()
    import telltale_ccl

    before, cpu, wall = telltale_ccl.figures(), time.process_time(), time.monotonic()
    for _ in range(STEPS):
        step()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    telltale_ccl.flush(5)
    after = telltale_ccl.figures()
    own = {name: after[name] - before[name] for name in after}
    seconds = own["overhead_seconds"] + own["sender_cpu_seconds"]
    print(json.dumps({
        "rank": rank,
        "step_cpu_ms": 1000 * cpu / STEPS,
        "step_wall_ms": 1000 * wall / STEPS,
        "records_a_step": own["told"] / STEPS,
        "us_a_record": 1e6 * seconds / own["told"],
        "on_job_threads_us": 1e6 * own["overhead_seconds"] / STEPS,
        "on_own_thread_us": 1e6 * own["sender_cpu_seconds"] / STEPS,
        "share_of_cpu": seconds / cpu,
        "dropped": own["dropped"],
    }), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
