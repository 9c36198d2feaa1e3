"""Hooks of process groups, which PyTorch has from 2.15 on.

They see every operation, also those that C++ begins by itself: a pre-hook is called before one is
issued, a post-hook with its work thereafter. When the work is complete, its future says so.
"""

from . import _record
from ._record import BEGIN, END, now_us

# Any number that no other hook of the process has.
HOOK_ID = 0x7E117A1E
MOST_ISSUED = 1024
TRANSFERS = {"SEND": "send", "RECV": "recv"}
# No operations that ranks wait for each other in.
PASSED_OVER = ("SPLIT", "NEW_WINDOW", "UNKNOWN")


def register(process_group, group, size):
    """Tells of what `process_group` does, as that of `group`. Says whether it has hooks. `size` gives
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
    """What a group has issued and has not told the end of."""

    def __init__(self, group, size):
        self._group = group
        self._size = size
        self._issued = {}
        self._recorder = _record.recorder()

    def before(self, arguments):
        if not self._recorder.is_working:
            return
        try:
            name = arguments.name.name
            peer = arguments.root if name in TRANSFERS else None
            unknown = peer is not None and not 0 <= peer < self._group.size
            if name in PASSED_OVER or unknown or len(self._issued) >= MOST_ISSUED:
                return
            tensors = list(arguments.input_tensors) or list(arguments.output_tensors)
            told = (TRANSFERS.get(name, name.lower()), now_us(), peer, self._size(tensors))
            self._issued[arguments.op_id] = told
            self._tell(BEGIN, told, 0)
        except Exception:
            self._recorder.error()

    def after(self, arguments):
        try:
            told = self._issued.pop(arguments.op_id, None)
            if told is None:
                return
            if arguments.work is None:
                self._tell(END, told, now_us())
            else:
                self._follow(arguments.work, told)
        except Exception:
            self._recorder.error()

    def _follow(self, work, told):
        def ended(_future):
            try:
                self._tell(END, told, now_us())
            except Exception:
                self._recorder.error()

        work.get_future().add_done_callback(ended)

    def _tell(self, kind, told, end_us):
        name, start_us, peer, size_bytes = told
        self._recorder.tell(kind, self._group, name, start_us, end_us, peer, size_bytes)
