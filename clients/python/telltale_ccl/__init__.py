"""Tells a node's Telltale agent when a PyTorch job's collectives and transfers begin and end.

Nothing here changes what the job computes, waits for the agent, or raises into the job. What does
not fit into the queue, or does not reach the agent, is dropped and counted (`figures`).
"""

import contextlib as _contextlib

from . import _patches, _record, _spans, _steps

__version__ = "0.1.0"
__all__ = ["checkpoint", "compute", "figures", "flush", "install", "install_on_import", "step"]


def install():
    """Begins to tell, from the next operation on. To be called before names are taken out of
    `torch.distributed` (`from torch.distributed import all_reduce`); what was taken before is not
    seen. Calling it again does nothing."""
    _patches.install()


def install_on_import():
    """Does the same, now or as soon as `torch.distributed` is imported."""
    _patches.install_on_import()


@_contextlib.contextmanager
def checkpoint():
    """Says that what happens within is slow on purpose: neither standing still nor latencies count
    meanwhile. `torch.save` says so by itself once it takes longer than half a second."""
    _record.recorder().checkpoint_begins(True)
    try:
        yield
    finally:
        _record.recorder().checkpoint_ends(True)


def compute(name):
    """Posts the time within as compute of this name, without the waits for other ranks: for code
    that is neither a module's call, a backward pass nor an optimizer's step."""
    return _spans.Named(name)


def step():
    """Marks the end of a step. From the first call on no step ends without one."""
    _steps.steps().explicit()


def figures():
    """What was reported and what it cost, since the process began: a dict of numbers."""
    return _record.recorder().figures()


def flush(timeout_seconds=1.0):
    """Waits until everything so far has been posted or dropped; returns whether it has."""
    return _record.recorder().flush(timeout_seconds)
