"""Puts itself around the operations of `torch.distributed`.

Each function is replaced by one that notes the time, calls the original with the same arguments and
hands on what it returns or raises. Works of asynchronous operations are noted as ended when they
are waited for. What PyTorch does in C++ by itself is seen in two ways: `DistributedDataParallel`'s
gradients through the end of the backward pass, and everything, where PyTorch has hooks for that
(2.15), through these. NCCL is left to Telltale's profiler plugin: here only the launch of its
kernels would be seen.
"""

import functools
import importlib.abc
import importlib.util
import sys
import threading
import time
import weakref

from . import _hooks, _record
from ._record import BEGIN, END, Group, now_us

MODULE = "torch.distributed"

# Which argument has the tensors that are counted, by position and by name. Lists are added up.
COLLECTIVES = {
    "all_reduce": (0, "tensor"),
    "all_reduce_coalesced": (0, "tensors"),
    "broadcast": (0, "tensor"),
    "reduce": (0, "tensor"),
    "all_gather": (1, "tensor"),
    "all_gather_into_tensor": (1, "input_tensor"),
    "_all_gather_base": (1, "input_tensor"),
    "all_gather_coalesced": (1, "input_tensor_list"),
    "gather": (0, "tensor"),
    "scatter": (0, "tensor"),
    "reduce_scatter": (0, "output"),
    "reduce_scatter_tensor": (0, "output"),
    "_reduce_scatter_base": (0, "output"),
    "all_to_all": (1, "input_tensor_list"),
    "all_to_all_single": (1, "input"),
    "barrier": (None, None),
    "monitored_barrier": (None, None),
}
# Where the group is among the positional arguments.
GROUP_AT = {
    "all_reduce": 2, "all_reduce_coalesced": 2, "broadcast": 2, "reduce": 3, "all_gather": 2,
    "all_gather_into_tensor": 2, "_all_gather_base": 2, "all_gather_coalesced": 2, "gather": 3,
    "scatter": 3, "reduce_scatter": 3, "reduce_scatter_tensor": 3, "_reduce_scatter_base": 3,
    "all_to_all": 2, "all_to_all_single": 4, "barrier": 0, "monitored_barrier": 0,
}
SENDS = ("send", "isend")
RECEIVES = ("recv", "irecv")
WRAPPED = "__telltale_ccl__"

_inside = threading.local()
_groups = weakref.WeakKeyDictionary()
_world = []  # what is told of the default group, once that is known


def install():
    """Patches what is imported of `torch.distributed`, importing it if need be."""
    importlib.import_module(MODULE)
    _patch(sys.modules[MODULE])


def install_on_import():
    """Patches `torch.distributed` now, or as soon as it is imported."""
    if MODULE in sys.modules:
        _patch(sys.modules[MODULE])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; has `torch.distributed` patched when it has been loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _patch(module)

        spec.loader.exec_module = exec_module
        return spec


def _patch(dist):
    """Replaces the functions of `torch.distributed` in both modules that have them."""
    try:
        import torch
        from torch.distributed import distributed_c10d as c10d
    except ImportError:
        return  # a PyTorch that was built without
    if getattr(c10d, WRAPPED, False):
        return
    setattr(c10d, WRAPPED, True)
    for name in COLLECTIVES:
        _replace(dist, c10d, name, functools.partial(_collective, name))
    for name in SENDS + RECEIVES:
        _replace(dist, c10d, name, functools.partial(_transfer, name))
    _replace(dist, c10d, "batch_isend_irecv", _batch)
    _replace(dist, c10d, "init_process_group", _initialized)
    _replace(dist, c10d, "new_group", _made)
    _replace(dist, c10d, "destroy_process_group", _destroyed)
    _accept_originals(c10d)
    _patch_wait(c10d)
    _patch_save(torch)


def _replace(dist, c10d, name, wrap):
    original = getattr(c10d, name, None)
    if original is None:
        return
    wrapper = functools.wraps(original)(wrap(original))
    setattr(wrapper, WRAPPED, original)
    setattr(c10d, name, wrapper)
    if getattr(dist, name, None) is original:
        setattr(dist, name, wrapper)


def _accept_originals(c10d):
    """Lets `P2POp` take `isend` and `irecv` also if they were taken out of the module before: it asks
    whether they are the very functions that are there now."""
    check, batched = getattr(c10d, "_check_op", None), getattr(c10d, "P2POp", None)
    if check is None or batched is None:
        return
    wrappers = {}
    for name in SENDS + RECEIVES:
        wrapper = getattr(c10d, name, None)
        wrappers[getattr(wrapper, WRAPPED, None)] = wrapper
    initialize = batched.__init__

    @functools.wraps(check)
    def check_op(op):
        return check(wrappers.get(op, op))

    @functools.wraps(initialize)
    def __init__(self, op, *arguments, **named):
        initialize(self, wrappers.get(op, op), *arguments, **named)

    c10d._check_op = check_op
    batched.__init__ = __init__


def _patch_wait(c10d):
    work = getattr(c10d, "Work", None)
    wait = getattr(work, "wait", None)
    if wait is None:
        return
    recorder = _record.recorder()

    @functools.wraps(wait)
    def waited(self, *arguments, **named):
        outcome = wait(self, *arguments, **named)
        if recorder._works:
            began_ns = recorder.timer()
            try:
                recorder.waited(self)
            except Exception:
                recorder.error()
            recorder.timed(began_ns)
        return outcome

    try:
        work.wait = waited
    except (AttributeError, TypeError):
        pass  # works are then seen to end when the recorder looks at them


def _patch_save(torch):
    save = getattr(torch, "save", None)
    if save is None:
        return
    recorder = _record.recorder()

    @functools.wraps(save)
    def saving(*arguments, **named):
        if not recorder.is_working or not _is_initialized():
            return save(*arguments, **named)
        recorder.checkpoint_begins(False)
        try:
            return save(*arguments, **named)
        finally:
            recorder.checkpoint_ends(False)

    torch.save = saving


# ---- groups ----


def _is_initialized():
    c10d = sys.modules.get(MODULE + ".distributed_c10d")
    return c10d is not None and c10d.is_initialized()


def _group(process_group):
    """What the agent is told of a group; `None` for one that is not to be told of."""
    if process_group is None and _world:
        return _world[0]
    c10d = sys.modules[MODULE + ".distributed_c10d"]
    default = c10d._get_default_group()
    if process_group is None or process_group is c10d.GroupMember.WORLD:
        process_group = default
    found = _groups.get(process_group)
    if found is None:
        found = _groups[process_group] = _describe(c10d, process_group, default)
        # What has hooks tells by itself.
        if found.is_seen and _hooks.register(process_group, found, _size):
            found.is_seen = False
    found = found if found.is_seen else None
    if process_group is default:
        _world[:] = [found]
    return found


def _describe(c10d, process_group, default):
    rank, size = c10d.get_rank(process_group), c10d.get_world_size(process_group)
    is_seen = rank >= 0 and "nccl" not in str(c10d.get_backend(process_group)).lower()
    if process_group is default:
        return Group(rank, size, None, None, is_seen)
    members = sorted_members(c10d, process_group)
    name = getattr(process_group, "group_name", None)
    if not isinstance(name, str):
        name = str(getattr(c10d, "_pg_names", {}).get(process_group, ""))
    # Names are unique among groups that exist at once, so members belong to the name.
    import hashlib

    text = ",".join(map(str, members)).encode("ascii")
    name = "torch/%s/%s" % (name, hashlib.sha1(text).hexdigest()[:12])
    return Group(rank, size, name, members, is_seen)


def sorted_members(c10d, process_group):
    """The ranks of a group in the whole job, in the order of the group."""
    ranks = getattr(c10d, "_pg_group_ranks", None)
    if isinstance(ranks, dict) and process_group in ranks:
        return [rank for rank, _ in sorted(ranks[process_group].items(), key=lambda item: item[1])]
    return list(c10d.get_process_group_ranks(process_group))


def _size(argument):
    if isinstance(argument, (list, tuple)):
        return sum(_size(one) for one in argument)
    if hasattr(argument, "numel"):
        return argument.numel() * argument.element_size()
    return 0


# ---- operations ----


def _observed(original, describe):
    """A function around `original`. `describe` gives what is told of a call: group, name, peer, and
    bytes; `None` for nothing."""
    recorder = _record.recorder()

    def wrapper(*arguments, **named):
        # Of functions that call each other, the outermost is told of.
        if not recorder.is_working or getattr(_inside, "busy", False):
            return original(*arguments, **named)
        began_ns = recorder.timer()
        told = None
        try:
            told = describe(arguments, named)
            if told is not None:
                recorder.tell(BEGIN, told[0], told[1], now_us(), 0, told[2], told[3])
        except Exception:
            # What is wrong with the arguments is for the original to say.
            recorder.error()
        if told is None:
            return original(*arguments, **named)
        _inside.busy = True
        recorder.timed(began_ns)
        start_ns = time.monotonic_ns()
        try:
            outcome = original(*arguments, **named)
        finally:
            _inside.busy = False
        end_ns = time.monotonic_ns()
        began_ns = recorder.timer()
        _ended(recorder, told, start_ns, end_ns, outcome)
        recorder.timed(began_ns)
        return outcome

    return wrapper


def _ended(recorder, told, start_ns, end_ns, outcome):
    """Tells the end of an operation, or follows the work that it returned."""
    try:
        group, name, peer, size_bytes = told
        start_us = start_ns // 1000
        if hasattr(outcome, "is_completed"):

            def ended():
                recorder.tell(END, group, name, start_us, now_us(), peer, size_bytes)

            recorder.follow(outcome, ended)
        else:
            recorder.tell(END, group, name, start_us, end_ns // 1000, peer, size_bytes)
    except Exception:
        recorder.error()


def _argument(arguments, named, position, name):
    if name in named:
        return named[name]
    if position is not None and position < len(arguments):
        return arguments[position]
    return None


def _collective(name, original):
    position, argument = COLLECTIVES[name]
    group_at = GROUP_AT[name]

    def describe(arguments, named):
        group = _group(_argument(arguments, named, group_at, "group"))
        if group is None:
            return None
        tensors = None if argument is None else _argument(arguments, named, position, argument)
        return group, name, None, _size(tensors)

    return _observed(original, describe)


def _transfer(name, original):
    is_send = name in SENDS
    global_name, local_name = ("dst", "group_dst") if is_send else ("src", "group_src")
    operation = "send" if is_send else "recv"

    def describe(arguments, named):
        process_group = _argument(arguments, named, 2, "group")
        group = _group(process_group)
        peer = named.get(local_name)
        if group is not None and peer is None:
            # From anybody: who it was is known too late.
            peer = _within(group, _argument(arguments, named, 1, global_name))
        if group is None or peer is None:
            return None
        return group, operation, peer, _size(_argument(arguments, named, 0, "tensor"))

    return _observed(original, describe)


def _within(group, rank):
    """The rank within a group of a rank of the whole job."""
    if rank is None or group.members is None:
        return rank
    return group.members.index(rank) if rank in group.members else None


def _batch(original):
    recorder = _record.recorder()

    def describe(operation):
        function = getattr(operation.op, WRAPPED, operation.op)
        name = "send" if function.__name__ in SENDS else "recv"
        group = _group(operation.group)
        peer = getattr(operation, "group_peer", None)
        peer = peer if peer is not None else _within(group, operation.peer) if group else None
        if group is None or peer is None:
            return None
        return group, name, peer, _size(operation.tensor)

    @functools.wraps(original)
    def wrapper(operations):
        if not recorder.is_working or getattr(_inside, "busy", False):
            return original(operations)
        told = []
        start_ns = time.monotonic_ns()
        began_ns = recorder.timer()
        try:
            told = [describe(operation) for operation in operations]
            for one in filter(None, told):
                recorder.tell(BEGIN, one[0], one[1], start_ns // 1000, 0, one[2], one[3])
        except Exception:
            recorder.error()
        recorder.timed(began_ns)
        _inside.busy = True
        try:
            works = original(operations)
        finally:
            _inside.busy = False
        end_ns = time.monotonic_ns()
        began_ns = recorder.timer()
        for index, one in enumerate(told):
            if one is not None and works:
                # A backend that joins operations returns one work for all.
                work = works[index] if len(works) == len(told) else works[-1]
                _ended(recorder, one, start_ns, end_ns, work)
        recorder.timed(began_ns)
        return works

    return wrapper


# ---- what PyTorch does by itself ----


def _initialized(original):
    def wrapper(*arguments, **named):
        outcome = original(*arguments, **named)
        recorder = _record.recorder()
        try:
            del _world[:]
            _group(None)
            from . import _gradients

            _gradients.patch()
        except Exception:
            recorder.error()
        return outcome

    return wrapper


def _made(original):
    def wrapper(*arguments, **named):
        process_group = original(*arguments, **named)
        recorder = _record.recorder()
        try:
            c10d = sys.modules[MODULE + ".distributed_c10d"]
            if process_group is not None and process_group is not c10d.GroupMember.NON_GROUP_MEMBER:
                _group(process_group)
        except Exception:
            recorder.error()
        return process_group

    return wrapper


def _destroyed(original):
    def wrapper(*arguments, **named):
        _record.recorder().flush(0.2)
        del _world[:]
        return original(*arguments, **named)

    return wrapper


