"""What the job's thread computes: spans of time, cut where it waits for other ranks.

One thread is measured, the one that trains. Its spans never overlap: a span that begins within another
ends a piece of that one, and a wait ends a piece before it and begins one after it. So what is posted
holds no wait that a function of Python shows. Nothing here knows PyTorch.
"""

import threading
import time

from . import _record
from ._record import TIMED_OF

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
MOST_NAME = 64
# Pieces beside a wait that are shorter are left out, and what a backward pass still does after the
# sums of gradients only counts if it is more than returning.
LEAST_PIECE_NS = 10_000
LEAST_REST_NS = 100_000
# After so many steps not all are measured if they are short, but as many as are so far apart.
MANY_STEPS = 64
LEAST_STEP_NS = 100_000_000
MOST_MASK = 1023


class Span:
    """A span, which is open between `begin` and `end` and may be used again. `start` is what its clock
    gave (`None` if it could not), and 0 while the thread waits or an inner span is open; `step` is the
    job's step at that time."""

    __slots__ = (
        "name", "keeps", "is_backward", "outer", "clock", "start", "step", "least_ns", "may_wait",
        "resumes",
    )  # fmt: skip

    def __init__(self, name, keeps, is_backward=False):
        self.name = name
        self.keeps = keeps  # whether passes within belong to it
        self.is_backward = is_backward
        self.outer = self.clock = self.step = None
        self.start = self.least_ns = 0
        self.may_wait = self.resumes = False

    def __reduce__(self):
        # What is put around an optimizer's step may be stored with its class.
        return Span, (self.name, self.keeps, self.is_backward)


class Spans:
    """The open spans of the measured thread. Nothing here raises into the job."""

    __slots__ = (
        "keeps", "top", "owner", "step", "left", "now", "append", "count", "skips", "at_rest",
        "_is_off", "_recorder", "_measures_all", "_mask", "_since", "_since_ns",
    )  # fmt: skip

    def __init__(self, recorder):
        # Whether calls of modules need no span: they belong to an open one, or nothing is measured.
        # It is all that an inner call of a module reads.
        self.keeps = self.at_rest = True
        self.top = None
        self.owner = 0
        self.step = None  # the job's, once there is something to count
        self.count = 0
        self.skips = self._is_off = False  # whether this step, or anything, is not measured
        self._measures_all = False
        self._mask = self._since = self._since_ns = 0
        self._recorder, self.append = recorder, recorder.queue.append
        self.now, self.left = time.monotonic_ns, TIMED_OF
        recorder.measured = self
        recorder.forgets.append(self._forget)

    def __reduce__(self):
        return spans, ()

    def start(self, rank, measures_all=False):
        """Measures this thread from now on, as this rank's of the job unless `RANK` names another."""
        self._measures_all = measures_all
        self._is_off = not self._recorder.start_spans(rank)
        if not self._is_off:
            self.owner = threading.get_ident()
            self.at_rest = self.keeps = self.skips = False
            self.top = None

    def is_on(self):
        """Whether passes and steps are measured."""
        return not self.at_rest or self.skips

    def _forget(self):
        """Measures nothing more. After a fork, as of a data loader, until there is a process group."""
        self.keeps = self.at_rest = True
        self.top = self.step = None
        self.count = self._mask = self._since = self._since_ns = 0
        self.skips, self._is_off = False, True

    # ---- spans ----

    # A span that is within no other, on the host, begins and ends in `_compute` itself.

    def timer(self):
        """Begins to measure what a span costs."""
        return self._recorder.timer()

    def timed(self, began_ns):
        self.left = TIMED_OF
        self._recorder.timed(began_ns)

    def next_step(self):
        """A step has ended; chooses whether the next one is measured.

        It is if the steps are not short, and otherwise if its number is divisible by a power of two. So
        ranks whose steps do not take the same time still measure the same ones."""
        self.step = step = (self.step or 0) + 1
        skips = bool(step & self._mask)
        if step >= MANY_STEPS and not skips:
            self._choose(step, self.now())
        if skips is not self.skips and not self._is_off:
            self.skips = self.at_rest = skips
            if self.top is None:
                self.keeps = skips

    def _choose(self, step, now):
        """Sets how many steps are passed over, by what those since the last choice took."""
        steps, took_ns = step - self._since, now - self._since_ns
        self._since, self._since_ns = step, now
        apart_ns = took_ns * (self._mask + 1) // max(steps, 1)
        if self._measures_all:
            self._mask = 0
        elif apart_ns < LEAST_STEP_NS:
            self._mask = min(2 * self._mask + 1, MOST_MASK)
        while apart_ns >= 2 * LEAST_STEP_NS and self._mask:
            self._mask >>= 1
            apart_ns >>= 1

    def begin(self, span, clock):
        """Opens a span on a device's clock, or the host's where that is `None`."""
        try:
            now, outer = self.now(), self.top
            span.outer, span.clock, span.may_wait = outer, clock, False
            span.resumes = outer is not None and bool(outer.start)
            if span.resumes:
                outer.least_ns = max(outer.least_ns, LEAST_PIECE_NS)
                self._close(outer, now)
            self.top = span
            self.keeps = span.keeps
            self._open(span, now)
        except Exception:
            self._recorder.error()

    def begin_named(self, name, clock):
        """Opens a span that the script names, if this is the measured thread or no span is open."""
        if self._is_off or (self.skips and self.top is None):
            return None
        if self.top is None:
            if not self._recorder.start_spans(None):
                return None
            self.owner = threading.get_ident()
        elif threading.get_ident() != self.owner:
            return None
        span = Span(name, True)
        self.begin(span, clock)
        return span

    def end(self, span):
        """Closes a span, and those within it that nothing has closed."""
        one = self.top
        while one is not None and one is not span:
            one = one.outer
        try:
            if one is not None:
                now, outer = self.now(), span.outer
                self._close(span, now)
                self.top = outer
                self.keeps = self.at_rest if outer is None else outer.keeps
                if outer is not None and span.resumes:
                    self._open(outer, now)
        except Exception:
            self._recorder.error()
        span.outer = span.clock = None
        span.start = span.least_ns = 0

    def _open(self, span, now):
        """Begins a piece of a span."""
        span.step = self.step
        span.start = now if span.clock is None else span.clock.stamp()

    def _close(self, span, now, stamp=None):
        """Ends the piece and queues it; `stamp` is its end where it has been taken."""
        start, clock = span.start, span.clock
        span.start = 0
        if clock is None:
            if start and now - start >= span.least_ns:
                self.count += 1
                self.append((span.name, start, now, span.step))
        elif start != 0:
            end = clock.stamp() if stamp is None else stamp
            self.count += 1
            # What is not queued is counted as dropped.
            if start is not None and end is not None:
                self.append(clock.piece(span, start, end))

    # ---- waits ----

    def mark(self, at_ns=0):
        """Where the piece ends if the thread is about to wait; `cut` or `unmark` is called with it then.
        `None` if it is another thread, or the piece has ended or is marked. To be asked for only
        while a span is open."""
        top = self.top
        if top is None or not top.start or top.may_wait:
            return None
        if threading.get_ident() != self.owner and (top.clock is None or not in_graph_task()):
            return None
        try:
            mark = at_ns or self.now() if top.clock is None else top.clock.stamp()
        except Exception:
            self._recorder.error()
            return None
        top.may_wait = mark is not None
        return mark

    def cut(self, mark, end_ns=0):
        """The thread has waited since `mark`."""
        try:
            top = self.top
            if top is not None and top.may_wait:
                top.may_wait = False
                top.least_ns = max(top.least_ns, LEAST_PIECE_NS)
                self._close(top, mark, mark)
                self._open(top, end_ns or self.now())
        except Exception:
            self._recorder.error()

    def unmark(self, mark):
        """The thread has not waited, but has begun what it will wait for later."""
        top = self.top
        if top is not None and top.may_wait:
            top.may_wait = False
            if top.clock is not None:
                top.clock.give_back(mark)

    def pause(self, at_ns):
        """This rank's own gradients are there: from here the backward pass only waits."""
        top = self.top
        if top.start and (top.is_backward or self._calculates(top)):
            self._close(top, at_ns)

    def resume(self, at_ns):
        """The sums are there."""
        top = self.top
        if top.start == 0 and (top.is_backward or self._calculates(top)):
            top.least_ns = LEAST_REST_NS
            self._open(top, at_ns)

    def _calculates(self, top):
        """Whether the pass that ends on this thread is within the innermost span. The host's are on the
        thread that called them, a device's may not be."""
        return threading.get_ident() == self.owner or top.clock is not None


def _no_graph_task():
    return False


# Whether this thread calculates gradients, which PyTorch does on threads of its own for devices.
in_graph_task = _no_graph_task


class Named:
    """A span that a script opens itself."""

    __slots__ = ("_name", "_opened")

    def __init__(self, name):
        self._name = str(name)[:MOST_NAME] or "compute"
        self._opened = []

    def __enter__(self):
        self._opened.append(_SPANS.begin_named(self._name, latest_clock()))

    def __exit__(self, *_):
        span = self._opened.pop() if self._opened else None
        if span is not None:
            _SPANS.end(span)


def _host_clock():
    return None


# Gives the clock of the device that the last pass was on.
latest_clock = _host_clock

_SPANS = Spans(_record.recorder())


def spans():
    """The process's spans."""
    return _SPANS
