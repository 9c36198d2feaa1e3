"""PyTorch: what its collectives and steps take, and what its CUDA memory is.

``install`` is all that most scripts need. The rest says what a job cannot know by itself, or is for one part of it.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any

from . import _telltale
from .errors import MissingPackageError

def install(*, allocator: bool = False) -> None:
    """Reports the collectives, transfers and steps of this process to the agent of its job, from the next one on.

    Call it before names are taken out of ``torch.distributed``. Without an agent it does nothing that is seen, and
    calling it again does nothing. With ``allocator``, CUDA memory is allocated by Telltale and recorded, from now on;
    this must come before the first CUDA tensor, and turns off PyTorch's cache, which is slow. :func:`pool` records a
    part of the memory and costs less, ``telltale run`` records all of it and leaves the cache.
    """
    _ccl().install()
    if allocator:
        chosen = _allocator()
        _torch().cuda.memory.change_current_allocator(chosen)


def pool() -> AbstractContextManager[None]:
    """For a ``with`` statement: CUDA tensors that are made within have memory of a pool that is recorded.

    Needs PyTorch 2.5. The pool lives as long as its tensors.
    """
    torch = _torch()
    made = torch.cuda.MemPool(_allocator().allocator())
    return torch.cuda.use_mem_pool(made)


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
    return _ccl().figures()


def _ccl() -> Any:
    return importlib.import_module("telltale_ccl")


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingPackageError("torch cannot be imported; `pip install torch`", str(error)) from error


def _allocator() -> Any:
    """PyTorch's view of the functions that allocate and free, which the native module exports."""
    memory = _torch().cuda.memory
    if not hasattr(memory, "CUDAPluggableAllocator"):
        raise MissingPackageError("this torch takes no allocator; install torch 2.0 or later")
    return memory.CUDAPluggableAllocator(_telltale.__file__, "telltale_torch_alloc", "telltale_torch_free")
