"""Spans on a CUDA device: there the host only launches, so events of the device have the times.

The job's thread records an event where a span begins and where it ends, and never waits for one. Our
own thread asks later whether they are over. Their times are put on the host's clock by a base: an
event whose time on the host is known, since it was recorded on a stream where nothing was before it.
While a graph is captured no event is asked for, as that would break the capture. After an error a
device is left alone.
"""

import collections
import functools
import itertools
import threading
import time

MOST_PENDING = 2048
MOST_FREE = 512
MOST_LOOKED_AT = 32
PENDING_NS = 60 * 10**9
# An event's distance from the base is a `float` of milliseconds: after 30 s it is still of 2 us.
BASE_NS = 30 * 10**9
# How exactly the base's time on the host must be known, and how often it is tried to.
BASE_ERROR_NS = 100_000
BASE_TRIES = 5
BASE_LOOKS = 200


class Piece:
    """A piece of a span on a device, before its times are known."""

    __slots__ = ("name", "step", "clock", "base", "begin", "end", "least_ns", "queued_ns")


class Clock:
    """The clock of one device."""

    def __init__(self, devices, index):
        self._devices, self._index = devices, index
        self._free = collections.deque(maxlen=MOST_FREE)
        self._base = None  # an event and its time on the host
        self._based_ns = 0
        self._stream = None
        self.is_broken = False

    # ---- on the job's thread ----

    def stamp(self):
        """An event that is over when the device has done what it was given before; `None` if there can
        be none."""
        devices = self._devices
        if self._base is None or devices.captures or self.is_broken:
            return None
        try:
            event = self._free.pop() if self._free else devices.cuda.Event(enable_timing=True)
            event.record(devices.cuda.current_stream(self._index))
        except Exception:
            self.is_broken = True
            raise
        return event

    def moment(self):
        """When the device has done what it was given before, to be asked for later; `None` if that
        will not be known."""
        event = self.stamp()
        return None if event is None else (self, self._base, event)

    def give_back(self, event):
        self._free.append(event)

    def piece(self, span, begin, end):
        piece = Piece()
        piece.name, piece.step, piece.least_ns = span.name, span.step, span.least_ns
        piece.clock, piece.base, piece.begin, piece.end = self, self._base, begin, end
        piece.queued_ns = time.monotonic_ns()
        return piece

    # ---- on our own thread ----

    def rebase(self, now_ns):
        """Makes a base if there is none or it is old."""
        if self._base is not None and now_ns - self._based_ns < BASE_NS:
            return
        cuda = self._devices.cuda
        if self._stream is None:
            self._stream = cuda.Stream(self._index)
        for _ in range(BASE_TRIES):
            event = cuda.Event(enable_timing=True)
            before_ns = time.monotonic_ns()
            event.record(self._stream)
            for _ in range(BASE_LOOKS):
                asked_ns = time.monotonic_ns()
                if event.query():
                    after_ns = time.monotonic_ns()
                    if after_ns - before_ns <= BASE_ERROR_NS:
                        self._base = event, (before_ns + after_ns) // 2
                        self._based_ns = after_ns
                        return
                    break
                before_ns = asked_ns

    def moment_ns(self, base, event):
        """When a moment was on the host's clock; `None` while it is not over."""
        if not event.query():
            return None
        base_event, base_ns = base
        moment_ns = base_ns + int(1e6 * base_event.elapsed_time(event))
        self.give_back(event)
        return moment_ns

    def times(self, piece):
        """When a piece began and ended on the host's clock; `None` while it is not over."""
        if not (piece.end.query() and piece.begin.query()):
            return None
        event, base_ns = piece.base
        times = [base_ns + int(1e6 * event.elapsed_time(one)) for one in (piece.begin, piece.end)]
        self._free.extend((piece.begin, piece.end))
        return times


class Devices:
    """The clocks of the devices that the job uses, and the pieces whose times are not known yet."""

    def __init__(self, cuda, tensor_type):
        self.cuda = cuda
        self.captures = 0
        self._tensor_type = tensor_type
        self.forget()

    def forget(self):
        """As in a process that has used no device yet."""
        self._clocks = {}
        self._latest = None
        self._pending = collections.deque()
        # Held while a graph's capture begins and while we ask for events.
        self._lock = threading.Lock()

    # ---- on the job's thread ----

    def clock(self, *arguments):
        """The clock of the device of the first tensor that is on one, `None` for the host's. Without any
        tensor it is the last one's."""
        try:
            found = self._tensor(arguments, 3)
        except Exception:
            found = None  # of a script's own kind of list, say
        if found is not None:
            index = found.device.index if found.is_cuda else None
            self._latest = None if index is None else self._clocks.get(index) or self._add(index)
        return self._latest

    def clock_of(self, tensors):
        """The clock of the device of the first tensor that is on one, `None` without."""
        found = self._tensor(tensors, 3)
        if found is None or not found.is_cuda:
            return None
        index = found.device.index
        return self._clocks.get(index) or self._add(index)

    def latest(self):
        return self._latest

    def _add(self, index):
        clock = self._clocks[index] = Clock(self, index)
        return clock

    def _tensor(self, values, depth):
        """A tensor on a device, or else any."""
        found = None
        values = values.values() if isinstance(values, dict) else values
        for one in itertools.islice(values, MOST_LOOKED_AT):
            if depth and isinstance(one, (tuple, list, dict)):
                one = self._tensor(one, depth - 1)
            if isinstance(one, self._tensor_type):
                if one.is_cuda:
                    return one
                found = one
        return found

    def patch_captures(self):
        """Lets no graph be captured while we ask for events, and does not ask while one is."""
        graph = getattr(self.cuda, "CUDAGraph", None)
        begin, end = getattr(graph, "capture_begin", None), getattr(graph, "capture_end", None)
        if begin is None or end is None:
            return

        @functools.wraps(begin)
        def capture_begin(*arguments, **named):
            with self._lock:
                self.captures += 1
            try:
                return begin(*arguments, **named)
            except BaseException:
                self.captures -= 1
                raise

        @functools.wraps(end)
        def capture_end(*arguments, **named):
            try:
                return end(*arguments, **named)
            finally:
                self.captures = max(self.captures - 1, 0)

        graph.capture_begin, graph.capture_end = capture_begin, capture_end

    # ---- on our own thread ----

    def moment_ns(self, moment, recorder):
        """When a moment was on the host's clock: `None` while it is not over, 0 if unknown."""
        clock, base, event = moment
        with self._lock:
            if self.captures:
                return None
            moment_ns = self._asked(clock, recorder, lambda one: clock.moment_ns(*one), (base, event))
        return 0 if clock.is_broken else moment_ns

    def resolve(self, pieces, recorder):
        """Takes pieces, and gives the spans whose times are known by now."""
        self._pending.extend(pieces)
        resolved = []
        with self._lock:
            if not self.captures:
                now_ns = time.monotonic_ns()
                for clock in list(self._clocks.values()):
                    self._asked(clock, recorder, clock.rebase, now_ns)
                resolved = self._resolved(recorder)
        limit_ns = time.monotonic_ns() - PENDING_NS
        pending = self._pending
        while pending and (len(pending) > MOST_PENDING or pending[0].queued_ns < limit_ns):
            pending.popleft()
            recorder.dropped()
        return resolved

    def _resolved(self, recorder):
        resolved, pending, waiting = [], collections.deque(), set()
        for piece in self._pending:
            # A device does one after the other: behind one that is not over, none is asked for.
            clock = piece.clock
            times = None if clock in waiting else self._asked(clock, recorder, clock.times, piece)
            if clock.is_broken:
                recorder.dropped()
            elif times is None:
                waiting.add(clock)
                pending.append(piece)
            elif times[1] - times[0] < piece.least_ns:
                recorder.left_out()
            else:
                resolved.append((piece.name, times[0], times[1], piece.step))
        self._pending = pending
        return resolved

    def _asked(self, clock, recorder, ask, what):
        """What a clock's function gives, `None` if that fails."""
        try:
            return None if clock.is_broken else ask(what)
        except Exception:
            recorder.error()
            clock.is_broken = True
            return None
