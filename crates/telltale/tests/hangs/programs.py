"""Training programs of which one rank hangs, for reasons that jobs have in practice.

`programs.py KIND RANK`: PyTorch and Gloo as they are, with the environment that torchrun sets. All ranks
take some steps together; then the named rank does what its program says. The line at which it stays ends
in `# here: KIND`.
"""

import ctypes
import datetime
import fcntl
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

KIND, CULPRIT = sys.argv[1], int(sys.argv[2])
RANK = int(os.environ["RANK"])
LIBRARY = os.environ.get("HANG_LIBRARY", "")
FOLDER = tempfile.mkdtemp(prefix="hang")
STEPS = 3


class Samples(Dataset):
    """Samples of which one never comes."""

    def __init__(self, last):
        self.last = last

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if index == self.last:
            time.sleep(1000)  # here: loader loader_worker
        return torch.ones(4)


def step(tensor):
    dist.all_reduce(tensor)  # here: waits other_size


def sleeps():
    time.sleep(1000)  # here: sleeps


def spins():
    while True:  # here: spins
        pass  # here: spins


def other_collective():
    dist.broadcast(torch.ones(8), src=CULPRIT)  # here: other_collective


def other_order(groups):
    first, second = groups if RANK != CULPRIT else groups[::-1]
    if RANK == CULPRIT:
        dist.all_reduce(torch.ones(8), group=first)  # here: other_order
    dist.all_reduce(torch.ones(8), group=first)
    dist.all_reduce(torch.ones(8), group=second)


def joins():
    stays = threading.Event()
    writer = threading.Thread(target=stays.wait)
    writer.start()
    try:
        raise ValueError("a bad sample")
    finally:
        writer.join()  # here: joins


def loader():
    for _ in DataLoader(Samples(3)):
        pass


def loader_worker():
    for _ in DataLoader(Samples(3), num_workers=1):
        pass


def holds_gil():
    ctypes.PyDLL(None).sleep(1000)  # here: holds_gil


def waits_for_gil():
    def holds():
        time.sleep(0.5)
        ctypes.PyDLL(None).sleep(1000)  # here: waits_for_gil

    threading.Thread(target=holds).start()
    while True:
        time.sleep(0.01)  # here: waits_for_gil


def deadlock():
    one, other = threading.Lock(), threading.Lock()
    barrier = threading.Barrier(2)

    def takes_other():
        with other:
            barrier.wait()
            with one:
                pass

    threading.Thread(target=takes_other, daemon=True).start()
    with one:
        barrier.wait()
        with other:  # here: deadlock
            pass


def empty_queue():
    queue.Queue().get()  # here: empty_queue


def saves():
    path = os.path.join(FOLDER, "checkpoint")
    os.mkfifo(path)
    torch.save(torch.ones(8), path)  # here: saves


def reads():
    path = os.path.join(FOLDER, "data")
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    with open(path, "rb") as file:
        file.read(held)  # here: reads


def locks_file():
    path = os.path.join(FOLDER, "lock")
    held = open(path, "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    file = open(path, "w")
    fcntl.flock(file, fcntl.LOCK_EX)  # here: locks_file


def stops():
    os.kill(os.getpid(), signal.SIGSTOP)  # here: stops


def compiles():
    from torch.utils.cpp_extension import load

    source = os.path.join(FOLDER, "own.cpp")
    # What a build leaves that was killed, and the next one waits for.
    for name, content in [("own.cpp", "int own() { return 0; }\n"), ("lock", "")]:
        with open(os.path.join(FOLDER, name), "w") as file:
            file.write(content)
    load("own", [source], build_directory=FOLDER)  # here: compiles


def breakpoints():
    breakpoint()  # here: breakpoints
    print("not reached")


def runs_program():
    subprocess.run(["sleep", "1000"])  # here: runs_program


def device():
    ctypes.CDLL(LIBRARY).cudaStreamSynchronize(0)  # here: device


def polls():
    while not os.path.exists(os.path.join(FOLDER, "never")):  # here: polls
        time.sleep(0.05)  # here: polls


def reads_terminal():
    own, other = os.openpty()
    os.dup2(other, 0)
    input("continue? ")  # here: reads_terminal


def forward():
    return [torch.rand(300, 300).matmul(torch.rand(300, 300)) for _ in range(20)]  # here: moves_slowly


def backward(found):
    return sum(float(one.sum()) for one in found)  # here: moves_slowly


def moves_slowly():
    for _ in range(100000):
        backward(forward())  # here: moves_slowly


def never_sends(tensor):
    if RANK == CULPRIT:
        time.sleep(1000)  # here: never_sends
    elif RANK == (CULPRIT + 1) % 4:
        dist.recv(tensor, src=CULPRIT)
    step(tensor)


def other_size(tensor):
    # The rank with the shorter tensor is done with its part, and waits in the next operation.
    dist.all_reduce(tensor[:1] if RANK == CULPRIT else tensor)


def main():
    timeout = datetime.timedelta(seconds=1000)
    dist.init_process_group("gloo", timeout=timeout)
    groups = [dist.new_group([0, 1, 2, 3], timeout=timeout) for _ in range(2)]
    tensor = torch.ones(8)
    for _ in range(STEPS):
        step(tensor)
    if RANK == CULPRIT:
        print("hangs", flush=True)
    if KIND == "other_order":
        other_order(groups)
    elif KIND in ("never_sends", "other_size"):
        globals()[KIND](tensor)
    elif RANK == CULPRIT:
        globals()[KIND]()
    step(tensor)


main()
