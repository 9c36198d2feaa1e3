"""The number of the job's step, the same on all ranks that run one program.

A step ends when the first optimizer that has stepped ends its step. Another one takes its place when it
has stepped twice meanwhile. In a job without optimizers each backward pass ends a step. Once the script
itself says where steps end, nothing else does.
"""

import weakref

from . import _record, _spans

MOST_OTHERS = 64


class Steps:
    """Counts in `step` of the spans, which is `None` until there is something to count."""

    __slots__ = (
        "ends_with_backward", "_recorder", "_spans", "_has_optimizer", "_is_explicit", "_counted",
        "_others",
    )  # fmt: skip

    def __init__(self, recorder, spans):
        self._recorder, self._spans = recorder, spans
        self.reset()
        recorder.forgets.append(self.reset)

    def __reduce__(self):
        return steps, ()

    def reset(self):
        """As in a process that has computed nothing yet."""
        self.ends_with_backward = True  # whether the next backward pass's end is a step's
        self._has_optimizer = self._is_explicit = False
        self._counted = _nothing  # gives the optimizer whose steps are counted
        self._others = []  # those that have stepped since

    def expect(self):
        """There is something to count."""
        if self._spans.step is None:
            self._spans.step = 0

    def optimizer_made(self):
        self._has_optimizer = True
        self.ends_with_backward = False
        self.expect()

    def optimizer_ended(self, optimizer, is_in_backward=False):
        """An optimizer has stepped. Within a backward pass the step ends with that."""
        if self._counted() is not optimizer and not self._takes_over(optimizer):
            return
        if self._others:
            self._others = []
        if is_in_backward:
            self.ends_with_backward = True
        elif not self._is_explicit:
            self._spans.next_step()

    def _takes_over(self, optimizer):
        """Whether it is the first one, or has stepped before since the one that counts last did."""
        others = self._others
        try:
            if self._counted is _nothing or any(one() is optimizer for one in others):
                self._counted = weakref.ref(optimizer)
                self.optimizer_made()
                return True
            if len(others) < MOST_OTHERS:
                others.append(weakref.ref(optimizer))
        except TypeError:
            self._recorder.error()  # nothing can refer to it
        return False

    def backward_ended(self):
        """A backward pass that a step ends with."""
        self.ends_with_backward = not self._has_optimizer
        if not self._is_explicit:
            self._spans.next_step()

    def explicit(self):
        """The script says that a step ends here. Where steps were counted before, that one has been."""
        if self._is_explicit or not self._spans.step:
            self._spans.next_step()
        self._is_explicit = True


def _nothing():
    return None


_STEPS = Steps(_record.recorder(), _spans.spans())


def steps():
    """The process's steps."""
    return _STEPS
