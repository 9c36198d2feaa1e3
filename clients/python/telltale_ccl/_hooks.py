"""Hooks of process groups, which PyTorch has from 2.15 on.

They see every collective, also those that C++ begins by itself: a pre-hook is called before one is
issued, a post-hook with its work thereafter. When the work is complete, its future says so. Transfers
are left to the functions: Gloo's works of these have no future. They cost five times as much as
what is put around the functions, so they are used only where they are asked for.
"""

import itertools
import time

from . import _record
from ._record import END_NS, NAME, TIMED_OF

# Any number that no other hook of the process has.
HOOK_ID = 0x7E117A1E
MOST_ISSUED = 1024
# Transfers, and no operations that ranks wait for each other in.
PASSED_OVER = ("SEND", "RECV", "SPLIT", "NEW_WINDOW", "UNKNOWN")


def register(process_group, group, size):
    """Tells of the collectives of `process_group`, as those of `group`. Says whether it has hooks. `size` gives
    the bytes of a list of tensors."""
    pre = getattr(process_group, "register_pre_hook", None)
    post = getattr(process_group, "register_post_hook", None)
    if pre is None or post is None:
        return False
    seen = _Seen(group, size)
    pre(HOOK_ID, seen.before)
    post(HOOK_ID, seen.after)
    return True


class _Seen:
    """What a group has issued and has not reported the end of."""

    def __init__(self, group, size):
        self._group = group
        self._size = size
        self._issued = {}
        self._calls = itertools.count(1).__next__
        self._recorder = _record.recorder()

    def before(self, arguments):
        recorder = self._recorder
        if not recorder.is_working:
            return
        began_ns = 0 if self._calls() % TIMED_OF else recorder.timer()
        try:
            name = arguments.name.name
            if name in PASSED_OVER or len(self._issued) >= MOST_ISSUED:
                return
            tensors = list(arguments.input_tensors) or list(arguments.output_tensors)
            entry = recorder.began(self._group, name.lower(), None, self._size(tensors))
            if recorder.devices is not None:
                recorder.ready(entry, recorder.devices.clock_of(tensors))
            self._issued[arguments.op_id] = entry
        except Exception:
            recorder.error()
        if began_ns:
            recorder.timed(began_ns)

    def after(self, arguments):
        recorder = self._recorder
        began_ns = 0 if self._calls() % TIMED_OF else recorder.timer()
        try:
            entry = self._issued.pop(arguments.op_id, None)
            if entry is None:
                return
            if arguments.work is None:
                recorder.met(self._group, entry[NAME])
                entry[END_NS] = time.monotonic_ns()
            else:
                self._follow(arguments.work, entry)
        except Exception:
            recorder.error()
        if began_ns:
            recorder.timed(began_ns)

    def _follow(self, work, entry):
        def ended(_future):
            self._recorder.met(self._group, entry[NAME])
            entry[END_NS] = time.monotonic_ns()

        work.get_future().add_done_callback(ended)
