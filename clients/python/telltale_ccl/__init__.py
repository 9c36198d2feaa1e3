"""Tells a node's Telltale agent when a PyTorch job's collectives and transfers begin and end.

Nothing here changes what the job computes, waits for the agent, or raises into the job. What does
not fit into the queue, or does not reach the agent, is dropped and counted (`counts`).
"""

# What is called imports what it needs: a script that never does so starts without it.
from ._on_import import install_on_import

__version__ = "0.1.0"
__all__ = ["checkpoint", "compute", "counts", "flush", "install", "install_on_import", "step"]


def install():
    """Begins to tell, from the next operation on. To be called before names are taken out of
    `torch.distributed` (`from torch.distributed import all_reduce`); what was taken before is not
    seen. Calling it again does nothing."""
    from . import _patches

    _patches.install()


def checkpoint():
    """For a `with` statement: says that what happens within is slow on purpose: neither standing still nor latencies
    count meanwhile. `torch.save` says so by itself once it takes longer than half a second."""
    from . import _record

    return _record.checkpoint()


def compute(name):
    """Posts the time within as compute of this name, without the waits for other ranks: for code
    that is neither a module's call, a backward pass nor an optimizer's step."""
    from . import _spans

    return _spans.Named(name)


def step():
    """Marks the end of a step. From the first call on no step ends without one."""
    from . import _steps

    _steps.steps().explicit()


def counts():
    """What was reported and what it cost, since the process began: a dict of numbers."""
    from . import _record

    return _record.recorder().counts()


def flush(timeout_seconds=1.0):
    """Waits until everything so far has been posted or dropped; returns whether it has."""
    from . import _record

    return _record.recorder().flush(timeout_seconds)
