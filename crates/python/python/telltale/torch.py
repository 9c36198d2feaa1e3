"""PyTorch: what its collectives and steps take, and what its CUDA memory is.

``install`` is all that most scripts need. The rest says what a job cannot know by itself, or is for one part of it.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from contextlib import AbstractContextManager
from typing import Any

from . import _telltale  # pyright: ignore[reportPrivateUsage]
from .errors import MissingPackageError

# PyTorch has no reference to an allocator or a pool that it uses, and frees memory after modules are gone. What is here
# therefore stays until the process ends.
_lock = threading.Lock()
_allocators: list[Any] = []
_pools: dict[int, Any] = {}
_is_allocating = False


def install(*, allocator: bool = False) -> None:
    """Reports the collectives, transfers and steps of this process to the agent of its job, from the next one on.

    Call it before names are taken out of ``torch.distributed``. Without an agent it does nothing that is seen, and
    calling it again does nothing. With ``allocator``, CUDA memory is allocated by Telltale and recorded, from now on;
    this must come before the first CUDA tensor, and turns off PyTorch's cache, which is slow. :func:`pool` records a
    part of the memory and costs less, ``telltale run`` records all of it and leaves the cache.
    """
    global _is_allocating
    _ccl().install()
    if not allocator:
        return
    with _lock:
        # PyTorch refuses a second change, also to the same one.
        if not _is_allocating:
            chosen = _allocator()
            _torch().cuda.memory.change_current_allocator(chosen)
            _is_allocating = True


def pool() -> AbstractContextManager[None]:
    """For a ``with`` statement: CUDA tensors that are made within have memory of a pool that is recorded.

    Needs PyTorch 2.5. There is one pool for each device, which stays until the process ends: what its tensors leave is
    used for later ones.
    """
    cuda = _torch().cuda
    if not (hasattr(cuda, "MemPool") and hasattr(cuda, "use_mem_pool")):
        raise MissingPackageError(
            "this torch has no pools of memory; "
            "install torch 2.5 or later, or call telltale.torch.install(allocator=True)"
        )
    with _lock:
        device: int = cuda.current_device()
        pool = _pools.get(device)
        if pool is None:
            # PyTorch asks the allocator for memory of the device on which the pool was made, and of no other.
            pool = _pools[device] = _kept(cuda.MemPool(_allocator().allocator()))
    return cuda.use_mem_pool(pool)


def step() -> None:
    """Marks the end of a step. From the first call on no step ends without one."""
    _ccl().step()


def checkpoint() -> AbstractContextManager[None]:
    """For a ``with`` statement: what happens within is slow on purpose, and neither counted nor taken for a hang."""
    return _ccl().checkpoint()


def compute(name: str) -> AbstractContextManager[None]:
    """For a ``with`` statement: reports the time within as computation with this name."""
    return _ccl().compute(name)


def flush(timeout: float = 1.0) -> bool:
    """Waits until everything so far has been sent or dropped; whether it has."""
    return _ccl().flush(timeout)


def counts() -> dict[str, Any]:
    """What was reported since the process began, and what that cost."""
    return _ccl().counts()


def _ccl() -> Any:
    return importlib.import_module("telltale_ccl")


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingPackageError("torch cannot be imported; `pip install torch`", str(error)) from error


def _allocator() -> Any:
    """PyTorch's view of the functions that allocate and free, which the native module exports. It is made once."""
    if not _allocators:
        memory = _torch().cuda.memory
        if not hasattr(memory, "CUDAPluggableAllocator"):
            raise MissingPackageError("this torch takes no allocator; install torch 2.0 or later")
        made = memory.CUDAPluggableAllocator(_telltale.__file__, "telltale_torch_alloc", "telltale_torch_free")
        _allocators.append(_kept(made))
    return _allocators[0]


def _kept(made: Any) -> Any:
    """The same, with a reference that the end of the interpreter does not give back."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made
