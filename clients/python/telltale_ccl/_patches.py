"""Puts itself around the operations of `torch.distributed`.

Each function is replaced by one that notes the time, calls the original with the same arguments and
hands on what it returns or raises. Works of asynchronous operations are noted as ended when they
are waited for. What PyTorch does in C++ by itself is seen in two ways: `DistributedDataParallel`'s
gradients through the end of the backward pass, and every collective, where PyTorch has hooks for
that (2.15) and the job's owner asks for them, through these. NCCL is left to Telltale's profiler
plugin: here only the launch of its kernels would be seen.
"""

import dis
import functools
import importlib
import inspect
import os
import sys
import time
import weakref

from . import _hooks, _record, _spans
from ._on_import import MODULE
from ._record import END_NS, GROUP, MEETINGS, NAME, PEER, TIMED_OF, WAITS, WORK, Group

# Where the tensors are that are counted, by position and by name, and by position the group. Lists
# of tensors are added up.
COLLECTIVES = {
    "all_reduce": (0, "tensor", 2),
    "all_reduce_coalesced": (0, "tensors", 2),
    "broadcast": (0, "tensor", 2),
    "reduce": (0, "tensor", 3),
    "all_gather": (1, "tensor", 2),
    "all_gather_into_tensor": (1, "input_tensor", 2),
    "_all_gather_base": (1, "input_tensor", 2),
    "all_gather_coalesced": (1, "input_tensor_list", 2),
    "gather": (0, "tensor", 3),
    "scatter": (0, "tensor", 3),
    "reduce_scatter": (0, "output", 3),
    "reduce_scatter_tensor": (0, "output", 3),
    "_reduce_scatter_base": (0, "output", 3),
    "all_to_all": (1, "input_tensor_list", 2),
    "all_to_all_single": (1, "input", 4),
    "barrier": (None, None, 0),
    "monitored_barrier": (None, None, 0),
}
SENDS = ("send", "isend")
RECEIVES = ("recv", "irecv")
WRAPPED = "__telltale_ccl__"


_groups = {}  # by the process group's identity: a weak reference to it, and what is reported of it
_world = []  # what is reported of the default group, once that is known


def install():
    """Patches what is imported of `torch.distributed`, importing it if need be."""
    importlib.import_module(MODULE)
    patch(sys.modules[MODULE])


def patch(dist):
    """Replaces the functions of `torch.distributed` in both modules that have them."""
    try:
        import torch
        from torch.distributed import distributed_c10d as c10d
    except ImportError:
        return  # a PyTorch that was built without
    if getattr(c10d, WRAPPED, False):
        return
    setattr(c10d, WRAPPED, True)
    wraps = {name: functools.partial(_observed, place=place) for name, place in COLLECTIVES.items()}
    wraps.update({name: _transfer for name in SENDS + RECEIVES})
    # Of functions that call each other, the innermost is reported: `irecv` and not `recv`, where that
    # calls it. Then no call has to ask whether it is within another.
    for name in [name for name in wraps if not _calls_any(c10d, name, wraps)]:
        _replace(dist, c10d, name, wraps[name])
    _replace(dist, c10d, "init_process_group", _initialized)
    _replace(dist, c10d, "new_group", _made)
    _replace(dist, c10d, "destroy_process_group", _destroyed)
    _accept_originals(c10d)
    _patch_wait(c10d)
    _patch_save(torch)


def _calls_any(c10d, name, others):
    """Whether the function of this name calls one of the others."""
    code = getattr(inspect.unwrap(getattr(c10d, name, None)), "__code__", None)
    steps = () if code is None else dis.get_instructions(code)
    called = {step.argval for step in steps if step.opname == "LOAD_GLOBAL"} - {name}
    return not called.isdisjoint(others)


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
    recorder, spans = _record.recorder(), _spans.spans()
    works, monotonic_ns, left = recorder.works, time.monotonic_ns, TIMED_OF

    @functools.wraps(wait)
    def waited(self, *arguments, **named):
        nonlocal left
        mark = None if spans.top is None else spans.mark()
        end_ns = 0
        try:
            outcome = wait(self, *arguments, **named)
        except BaseException:
            if mark is not None:
                spans.cut(mark)
            raise
        if works:
            left -= 1
            began_ns = 0 if left else recorder.timer()
            entry = works.pop(id(self), None)
            # A work that is gone may have left its place to this one.
            if entry is not None and entry[WORK]() is self:
                waits = recorder.waits
                entry[WAITS] = waits - entry[WAITS]
                recorder.waits = waits + 1
                if entry[PEER] is None and entry[NAME] in MEETINGS:
                    entry[GROUP].met = waits + 1
                entry[END_NS] = end_ns = monotonic_ns()
            if began_ns:
                left = TIMED_OF
                recorder.timed(began_ns)
        if mark is not None:
            spans.cut(mark, end_ns)
        return outcome

    setattr(waited, WRAPPED, wait)
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
    """The report of a group to the agent; `None` for one without a report."""
    if process_group is None and _world:
        return _world[0]
    found = _groups.get(id(process_group))
    if found is not None and found[0]() is process_group:
        return found[1]
    c10d = sys.modules[MODULE + ".distributed_c10d"]
    default = c10d._get_default_group()
    if process_group is None or process_group is c10d.GroupMember.WORLD:
        process_group = default
    group = _describe(c10d, process_group, default)
    if group.is_seen and _record.recorder().numbered(group):
        wanted = os.environ.get("TELLTALE_CCL_HOOKS") == "1"
        group.is_hooked = wanted and _hooks.register(process_group, group, _size)
    else:
        group = None
    key = id(process_group)
    _groups[key] = (weakref.ref(process_group, lambda _: _groups.pop(key, None)), group)
    if process_group is default:
        _world[:] = [group]
    return group


def _forget_groups():
    del _world[:]
    _groups.clear()


_record.recorder().forgets.append(_forget_groups)


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

# These functions stand in the job's way, behind a step whose numbers have filled the caches: there
# it is each other piece of code and memory touched that costs. So each does all by itself, in one
# frame, and what can be left to our own thread is.


def _observed(original, place):
    """A function around the collective `original`, of which `place` says where its arguments are."""
    argument_at, argument, group_at = place
    recorder, spans = _record.recorder(), _spans.spans()
    timer, timed, follow, left = recorder.timer, recorder.timed, recorder.follow, TIMED_OF
    append, monotonic_ns = recorder.queue.append, time.monotonic_ns
    name, tensor_type = original.__name__, _tensor_type()
    is_meeting = name in MEETINGS

    def wrapper(*arguments, **named):
        nonlocal left
        left -= 1
        began_ns = 0 if left else timer()
        entry, start_ns = None, 0
        try:
            given = len(arguments)
            group = arguments[group_at] if group_at < given else named.get("group")
            group = _world[0] if group is None and _world else _group(group)
            if group is not None and not group.is_hooked:
                size_bytes = 0
                if argument is not None:
                    tensor = arguments[argument_at] if argument_at < given else named[argument]
                    if type(tensor) is tensor_type:
                        size_bytes = tensor.numel() * tensor.element_size()
                    else:
                        size_bytes = _size(tensor)
                group.collectives = number = group.collectives + 1
                start_ns = monotonic_ns()
                entry = [
                    group, name, None, size_bytes, number, start_ns, 0, None, 0, False, 0,
                    spans.step, None,
                ]  # fmt: skip
                if recorder.devices is not None and argument is not None:
                    recorder.ready(entry, recorder.devices.clock_of((tensor,)))
                append(entry)
        except Exception:
            # What is wrong with the arguments is for the original to say.
            recorder.error()
        if began_ns:
            left = TIMED_OF
            timed(began_ns)
        mark = None if spans.top is None else spans.mark(start_ns)
        if entry is None:
            return waiting(original, arguments, named, mark)
        try:
            outcome = original(*arguments, **named)
        except BaseException:
            recorder.failed(entry)
            if mark is not None:
                spans.cut(mark)
            raise
        if outcome is None:
            recorder.waits = waits = recorder.waits + 1
            if is_meeting:
                group.met = waits
            entry[END_NS] = end_ns = monotonic_ns()
            if mark is not None:
                spans.cut(mark, end_ns)
        else:
            if mark is not None:
                spans.unmark(mark)
            follow(outcome, entry, began_ns)
        return outcome

    return wrapper


def _transfer(original):
    name = original.__name__
    is_send = name in SENDS
    global_name, local_name = ("dst", "group_dst") if is_send else ("src", "group_src")
    name, has_work = name.lstrip("i"), name.startswith("i")
    recorder, spans = _record.recorder(), _spans.spans()
    timer, timed, follow, left = recorder.timer, recorder.timed, recorder.follow, TIMED_OF
    append, monotonic_ns = recorder.queue.append, time.monotonic_ns

    def wrapper(*arguments, **named):
        nonlocal left
        left -= 1
        began_ns = 0 if left else timer()
        entry, start_ns = None, 0
        try:
            given = len(arguments)
            group = arguments[2] if given > 2 else named.get("group")
            group = _world[0] if group is None and _world else _group(group)
            # From anybody: who it was is known too late.
            peer = arguments[1] if given > 1 else named.get(global_name)
            if group is not None and (peer is None or group.members is not None):
                local = named.get(local_name)
                peer = _within(group, peer) if local is None else local
            if group is not None and peer is not None:
                tensor = arguments[0] if given else named["tensor"]
                size_bytes = tensor.numel() * tensor.element_size()
                group.transfers = number = group.transfers + 1
                waits = recorder.waits
                world = _world[0] if _world else None
                late = waits != group.met and (world is None or waits != world.met)
                start_ns = monotonic_ns()
                entry = [
                    group, name, peer, size_bytes, number, start_ns, 0, None, 0, late, waits,
                    spans.step, None,
                ]  # fmt: skip
                # What is received need not be computed before.
                if recorder.devices is not None and is_send:
                    recorder.ready(entry, recorder.devices.clock_of((tensor,)))
                append(entry)
        except Exception:
            recorder.error()
        if began_ns:
            left = TIMED_OF
            timed(began_ns)
        mark = None if has_work or spans.top is None else spans.mark(start_ns)
        if entry is None:
            return waiting(original, arguments, named, mark)
        try:
            outcome = original(*arguments, **named)
        except BaseException:
            recorder.failed(entry)
            if mark is not None:
                spans.cut(mark)
            raise
        if has_work:
            follow(outcome, entry, began_ns)
        else:
            waits = recorder.waits
            entry[WAITS] = waits - entry[WAITS]
            recorder.waits = waits + 1
            entry[END_NS] = end_ns = monotonic_ns()
            if mark is not None:
                spans.cut(mark, end_ns)
        return outcome

    return wrapper


def waiting(original, arguments, named, mark):
    """Calls a function of which nothing is posted, and which may wait."""
    if mark is None:
        return original(*arguments, **named)
    spans, has_waited = _spans.spans(), True
    try:
        outcome = original(*arguments, **named)
        # An asynchronous operation has a work, and waits later; some report that there was nothing.
        has_waited = outcome is not False and not hasattr(outcome, "wait")
    finally:
        if has_waited:
            spans.cut(mark)
        else:
            spans.unmark(mark)
    return outcome


def cut_waits(owner, name):
    """Has spans of compute leave out what a function in C++ may wait for other ranks."""
    original, spans = getattr(owner, name, None), _spans.spans()
    if original is None or hasattr(original, WRAPPED):
        return

    @functools.wraps(original)
    def wrapper(*arguments, **named):
        mark = None if spans.top is None else spans.mark()
        return waiting(original, arguments, named, mark)

    setattr(wrapper, WRAPPED, original)
    setattr(owner, name, wrapper)


def _tensor_type():
    import torch

    return torch.Tensor


def _within(group, rank):
    """The rank within a group of a rank of the whole job."""
    if rank is None or group.members is None:
        return rank
    return group.members.index(rank) if rank in group.members else None


# ---- what PyTorch does by itself ----


def _initialized(original):
    def wrapper(*arguments, **named):
        outcome = original(*arguments, **named)
        recorder = _record.recorder()
        try:
            del _world[:]
            _group(None)
            from . import _compute, _gradients

            _gradients.patch()
            _compute.start(sys.modules[MODULE].get_rank())
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


