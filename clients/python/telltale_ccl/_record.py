"""Records of operations, from the thread that did them to the agent.

The job's threads only append a tuple to a bounded queue. A thread of our own turns them into JSON
and posts them, four times a second.
"""

import atexit
import collections
import json
import os
import threading
import time
import weakref

from . import _post

MOST_QUEUED = 8192
MOST_WORKS = 4096
MOST_ERRORS = 100
INTERVAL_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0
GROUPS_AGAIN_SECONDS = 30.0
EXIT_SECONDS = 1.0
SAVE_SECONDS = 0.5

TIMED_OF = 17  # one in so many calls is measured; a prime, so that no kind of call is left out

BEGIN, END = 0, 1


def now_us():
    """Microseconds of the clock that only grows."""
    return time.monotonic_ns() // 1000


class Group:
    """A process group as the agent is told of it."""

    __slots__ = ("rank", "size", "name", "members", "is_seen", "tail")

    def __init__(self, rank, size, name, members, is_seen):
        self.rank = rank
        self.size = size
        self.name = name  # None for the group of all ranks
        self.members = members
        self.is_seen = is_seen
        self.tail = None


class Recorder:
    """The queue, its figures, and the thread that empties it."""

    def __init__(self):
        self.is_working = True
        self.overhead_ns = 0
        self._reset()

    def _reset(self):
        """As in a process that has told nothing yet; also after a fork, where our thread is gone."""
        self._queue = collections.deque()
        self._thread = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._pid = os.getpid()
        self._told = self._posted = self._dropped = self._failed_posts = self._refused_posts = 0
        self._errors = 0
        self._sender_cpu_ns = 0
        self._groups = {}
        self._works = {}
        self._explicit = 0
        self._saving_since = None
        self._is_excused = False
        self._taken = 0
        self._calls = 0
        self._rank = self._epoch = None

    # ---- on the job's threads ----

    def tell(self, kind, group, name, start_us, end_us, peer, size_bytes):
        """Queues the beginning or the end of an operation."""
        if self._thread is None:
            self._start()
        if len(self._queue) >= MOST_QUEUED:
            self._dropped += 1
            return
        self._told += 1
        self._queue.append((kind, group, name, start_us, end_us, peer, size_bytes))

    def timer(self):
        """Begins to measure what we cost the job's thread, now and then: asking for its CPU time is
        itself a call into the system."""
        self._calls += 1
        return 0 if self._calls % TIMED_OF else time.thread_time_ns()

    def timed(self, began_ns):
        """Adds what that was, for all of those that were not measured too."""
        if began_ns:
            self.overhead_ns += TIMED_OF * (time.thread_time_ns() - began_ns)

    def error(self):
        """Counts a mistake of ours; after many, nothing more is told."""
        self._errors += 1
        if self._errors >= MOST_ERRORS:
            self.is_working = False

    def checkpoint_begins(self, is_explicit):
        with self._lock:
            if is_explicit:
                self._explicit += 1
            elif self._saving_since is None:
                self._saving_since = time.monotonic()
        if self._thread is None:
            self._start()
        if is_explicit:
            self._wake.set()

    def checkpoint_ends(self, is_explicit):
        with self._lock:
            if is_explicit:
                self._explicit -= 1
            else:
                self._saving_since = None

    def follow(self, work, ended):
        """Calls `ended` once when `work` is waited for, is complete, or is gone."""
        if len(self._works) >= MOST_WORKS:
            self._dropped += 1
            return
        key = id(work)
        reference = weakref.ref(work, lambda _: self.work_ended(key, reference))
        self._works[key] = (reference, ended)

    def waited(self, work):
        """A work that may be followed was waited for with success."""
        found = self._works.get(id(work))
        if found is not None and found[0]() is work:
            self.work_ended(id(work), found[0])

    def work_ended(self, key, reference):
        found = self._works.get(key)
        if found is not None and found[0] is reference:
            del self._works[key]
            found[1]()

    # ---- for the job's owner ----

    def figures(self):
        return {
            "told": self._told,
            "posted": self._posted,
            "dropped": self._dropped,
            "failed_posts": self._failed_posts,
            "refused_posts": self._refused_posts,
            "errors": self._errors,
            "overhead_seconds": self.overhead_ns / 1e9,  # CPU time of the job's threads
            "sender_cpu_seconds": self._sender_cpu_ns / 1e9,
        }

    def flush(self, timeout_seconds):
        until = time.monotonic() + timeout_seconds
        wanted = self._told
        while self._thread is not None and self._taken < wanted:
            if time.monotonic() > until:
                return False
            self._wake.set()
            time.sleep(0.005)
        return True

    # ---- on our own thread ----

    def _start(self):
        with self._lock:
            if self._thread is not None:
                return
            # The environment is looked at now and not at import: a worker that was started ahead
            # gets its rank late.
            self._rank = _number("RANK")
            self._epoch = _number("TELLTALE_EPOCH")
            where = _post.place(os.environ.get("TELLTALE_LOG_CCL", ""))
            if where is None:
                self.is_working = False
                return
            self._thread = threading.Thread(
                target=self._run, args=(where,), name="telltale-ccl", daemon=True
            )
            self._thread.start()

    def _run(self, where):
        connection = _post.Connection(where)
        pause = INTERVAL_SECONDS
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            try:
                reached = self._send(connection)
            except Exception:
                self.error()
                reached = False
            pause = INTERVAL_SECONDS if reached else min(pause * 2, LONGEST_PAUSE_SECONDS)
            self._sender_cpu_ns = time.thread_time_ns()

    def _send(self, connection):
        """Posts what there is. Says whether the agent could be reached."""
        self._end_complete_works()
        events = [self._queue.popleft() for _ in range(len(self._queue))]
        excuses = self._excuse_lines()
        lines = list(excuses)
        for event in events:
            group = event[1]
            if group.name is not None:
                lines.extend(self._group_lines(group))
            lines.append(self._line(event))
        if not lines:
            return True
        reached = True
        try:
            status = connection.post("\n".join(lines).encode("utf-8"))
        except OSError:
            # Perhaps the agent had closed the connection while nothing was told.
            try:
                status = connection.post("\n".join(lines).encode("utf-8"))
            except OSError:
                status, reached = None, False
        if status is None:
            self._failed_posts += 1
        elif status >= 300:
            self._refused_posts += 1
        if status is None or status >= 300:
            self._dropped += len(events)
            self._groups.clear()
            if excuses or self._is_excused:
                self._is_excused = None  # said again with the next post
        else:
            self._posted += len(events)
        self._taken += len(events)
        return reached

    def _end_complete_works(self):
        """Ends works that nobody has waited for yet but that are complete."""
        for key, (reference, _) in list(self._works.items()):
            work = reference()
            if work is not None and work.is_completed():
                self.work_ended(key, reference)
            del work

    def _excuse_lines(self):
        """What is to be said of checkpoints."""
        with self._lock:
            since = self._saving_since
            is_long = since is not None and time.monotonic() - since > SAVE_SECONDS
            is_excused = self._explicit > 0 or is_long
        if is_excused == self._is_excused or self._rank is None:
            return []
        self._is_excused = is_excused
        finished = "false" if is_excused else "true"
        text = '{"opType":"checkpoint","global_rank":%d,"finished":%s%s}'
        return [text % (self._rank, finished, self._common())]

    def _group_lines(self, group):
        """Who is in a group: when it is met first, and now and then, for the agent may be a new one."""
        now = time.monotonic()
        told = self._groups.get(group.name)
        if told is not None and now - told < GROUPS_AGAIN_SECONDS:
            return []
        if group.members is None:
            return []
        self._groups[group.name] = now
        text = '{"opType":"group","group":%s,"ranks":%s%s}'
        ranks = json.dumps(group.members, separators=(",", ":"))
        return [text % (json.dumps(group.name), ranks, self._common())]

    def _line(self, event):
        kind, group, name, start_us, end_us, peer, size_bytes = event
        if group.tail is None:
            named = "" if group.name is None else ',"group":%s' % json.dumps(group.name)
            known = "" if self._rank is None else ',"global_rank":%d' % self._rank
            group.tail = ',"context_rank":%d,"context_size":%d%s%s%s,"filename":"telltale_ccl"}' % (
                group.rank, group.size, named, known, self._common(),
            )
        remote = "" if peer is None else ',"remoteRank":%d' % peer
        return '{"opType":"%s","bytes":%d,"startTime":%d,"endTime":%d,"finished":%s%s%s' % (
            name, size_bytes, start_us, end_us, "true" if kind == END else "false", remote, group.tail,
        )

    def _common(self):
        return "" if self._epoch is None else ',"epoch":%d' % self._epoch


def _number(variable):
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None


_RECORDER = Recorder()


def recorder():
    """The process's recorder."""
    return _RECORDER


def _at_exit():
    # Another process than the one that told, say one of a pool, has nothing to say.
    if _RECORDER._pid == os.getpid():
        _RECORDER.flush(EXIT_SECONDS)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RECORDER._reset)
