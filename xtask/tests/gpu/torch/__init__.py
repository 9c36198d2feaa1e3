"""Stands in for PyTorch in tests: blocks of 2 MiB and more from the stand-in of CUDA's driver, kept in a cache when they
are freed. What a driver would count of them is written for the library that stands in for NVML.
"""

import ctypes
import os

if os.environ.get("STAND_IN_TORCH") == "none":
    raise ImportError("No module named 'torch'")
if os.environ.get("STAND_IN_TORCH") == "broken":
    raise RuntimeError("CUDA error: out of memory")

__version__ = "0.0-stand-in"
uint8 = 1
GRANULE = 2 << 20
# What the driver keeps for a process beside its blocks.
CONTEXT = 400 << 20
GPU = os.path.join(os.environ["STAND_IN"], "nvml", "gpu0")

_driver = ctypes.CDLL("libcuda.so.1")
_driver.cuInit(0)
_blocks = {}
_cache = []


def _read(name):
    with open(os.path.join(GPU, name)) as file:
        return file.read()


def _write(name, text):
    # The ranks of a job write at the same time.
    written = os.path.join(GPU, f"{name}.{os.getpid()}")
    with open(written, "w") as file:
        file.write(text)
    os.replace(written, os.path.join(GPU, name))


_others = _read("compute")
_used, _total = map(int, _read("memory").split())


def _count():
    mine = CONTEXT + sum(_blocks.values())
    _write("compute", f"{_others}{os.getpid()} {mine}\n")
    _write("memory", f"{_used + mine} {_total}\n")


class Tensor:
    def __init__(self, size):
        self.size = (size + GRANULE - 1) // GRANULE * GRANULE
        same = [address for address in _cache if _blocks[address] == self.size]
        if same:
            self.address = same[0]
            _cache.remove(self.address)
            return
        target = ctypes.c_uint64()
        assert _driver.cuMemAlloc_v2(ctypes.byref(target), ctypes.c_size_t(self.size)) == 0
        self.address = target.value
        _blocks[self.address] = self.size

    def __del__(self):
        _cache.append(self.address)


def empty(size, dtype, device):
    return Tensor(size)


def ones(size, device):
    return Tensor(4 * size)


class cuda:
    class nccl:
        @staticmethod
        def version():
            return (2, 28, 3)

    class Properties:
        total_memory = _total

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def get_device_properties(_):
        return cuda.Properties

    @staticmethod
    def set_device(_):
        pass

    @staticmethod
    def synchronize():
        _count()

    @staticmethod
    def empty_cache():
        while _cache:
            address = _cache.pop()
            assert _driver.cuMemFree_v2(ctypes.c_uint64(address)) == 0
            del _blocks[address]

    @staticmethod
    def memory_reserved():
        return sum(_blocks.values()) + int(os.environ.get("STAND_IN_MORE", "0"))

    @staticmethod
    def memory_allocated():
        return sum(_blocks.values()) - sum(_blocks[address] for address in _cache)
