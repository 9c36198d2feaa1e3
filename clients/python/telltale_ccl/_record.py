"""Operations, from the thread that does them to the agent.

The job's threads append a list to a bounded queue and write into it when the operation has ended. A
thread of our own looks once a second: what has ended is reported once, and what is still under way is
reported as such, so that a hang is seen. Operations are numbered where they happen; so what is lost on
the way is a gap in the numbers, and no rank looks as if it had not done them.
"""

import atexit
import collections
import contextlib
import functools
import json
import os
import threading
import time
import weakref

from . import _post

MOST_QUEUED = 16384
MOST_WORKS = 4096
MOST_ERRORS = 100
MOST_HEADS = 4096
MOST_GROUPS = 4096
MOST_LINES_PER_POST = 8192
INTERVAL_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 5.0
AGAIN_SECONDS = 5.0
GROUPS_AGAIN_SECONDS = 30.0
EXIT_SECONDS = 1.0
SAVE_SECONDS = 0.5
# For how long the end of an operation is not reported while its device has not come to its beginning.
READY_SECONDS = 60.0

# One call in so many is measured: asking for a thread's CPU time is a call into the system. A prime,
# so that no kind of call is left out.
TIMED_OF = 61

# What the list of an operation holds: which group, what, the other rank, how much, its number, when
# it began, when it ended (0 while it has not), a weak reference to its work if that is followed, when
# its being under way is reported again (0 while it was not), and of a transfer whether another rank
# had held this one up before it began, and the recorder's waits when it began; once it has ended, how
# many others ended in between; the job's step when it began, `None` where steps are not counted; and
# where its device will have come to it, if what it passes on is computed there.
# A span of compute is a tuple of its name, its begin and end and the step; where a device measures it
# and the two are not known yet, another object.
GROUP, NAME, PEER, BYTES, NUMBER, START_NS, END_NS, WORK, AGAIN_NS, LATE, WAITS, STEP, READY = range(13)
# Instead of the end of an operation that failed, or that is not followed to its end.
FORGOTTEN = -1
# Collectives that no rank leaves before all have entered: the ranks go on from there together.
MEETINGS = frozenset((
    "all_reduce", "all_reduce_coalesced", "allreduce", "allreduce_coalesced",
    "all_gather", "all_gather_into_tensor", "_all_gather_base", "all_gather_coalesced",
    "allgather", "allgather_base", "allgather_coalesced", "_allgather_base",
    "all_to_all", "all_to_all_single", "alltoall", "alltoall_base",
    "barrier", "monitored_barrier",
))  # fmt: skip


class Group:
    """A process group as reported to the agent."""

    __slots__ = ("rank", "size", "name", "members", "is_seen", "is_hooked", "collectives", "transfers", "met")

    def __init__(self, rank, size, name, members, is_seen):
        self.rank = rank
        self.size = size
        self.name = name  # None for the group of all ranks
        self.members = members
        self.is_seen = is_seen
        self.is_hooked = False  # whether PyTorch itself tells us of its collectives
        # How many there were; an operation's number is how many there are with it.
        self.collectives = 0
        self.transfers = 0
        self.met = 0  # the recorder's waits when its ranks last met in a collective


class Recorder:
    """The queue, its counters, and the thread that empties it."""

    def __init__(self):
        self.is_working = True
        self.overhead_ns = 0
        # How often this process has waited for other ranks. A transfer that begins or ends when it has
        # waited since its ranks last met is measured with what others kept it waiting.
        self.waits = 0
        self.queue = collections.deque(maxlen=MOST_QUEUED)
        self.works = {}
        self.measured = None  # the spans of compute
        self.devices = None  # the devices' clocks, where spans are measured with these
        self.forgets = []  # called where reported groups are gone
        self._reset()

    def _reset(self):
        """As in a process that has reported nothing yet; also after a fork, where our thread is gone."""
        for forget in self.forgets:
            forget()
        self.queue.clear()
        self.works.clear()
        self._thread = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._pid = os.getpid()
        self._posted = self._dropped = self._failed_posts = self._refused_posts = 0
        self._errors = self._taken = 0
        self._looks_begun = self._looks_ended = 0
        self._sender_cpu_ns = 0
        self._living = []
        self._numbered = {}
        self._heads = {}
        self._groups_reported = {}
        self._explicit = 0
        self._saving_since = None
        self._is_excused = False
        self._rank = self._epoch = self._span_rank = None
        self._left_out = 0

    # ---- on the job's threads ----

    def numbered(self, group):
        """Tells of a group from now on, which goes on with the numbers of the one that had its name
        before. Says whether it does: not if there are too many."""
        before = self._numbered.get(group.name)
        if before is not None:
            group.collectives, group.transfers = before.collectives, before.transfers
        elif len(self._numbered) >= MOST_GROUPS:
            return False
        self._numbered[group.name] = group
        self.start()
        return self.is_working

    def began(self, group, name, peer, size_bytes):
        """Queues an operation that begins, and gives its list."""
        if peer is None:
            group.collectives = number = group.collectives + 1
        else:
            group.transfers = number = group.transfers + 1
        began_ns = time.monotonic_ns()
        entry = [
            group, name, peer, size_bytes, number, began_ns, 0, None, 0, False, self.waits,
            getattr(self.measured, "step", None), None,
        ]  # fmt: skip
        self.queue.append(entry)
        return entry

    def ready(self, entry, clock):
        """An operation on a device begins when that has computed what is passed on, not when it is
        asked to: `clock` is the device's, `None` where it is on none."""
        if clock is not None and not self.measured.skips:
            entry[READY] = clock.moment()

    def met(self, group, name):
        """A collective of a group has ended here."""
        self.waits += 1
        if name in MEETINGS:
            group.met = self.waits

    def failed(self, entry):
        """An operation was refused or has failed: it is not reported, and its number is free."""
        entry[END_NS] = FORGOTTEN
        group, number = entry[GROUP], entry[NUMBER]
        if entry[PEER] is None and group.collectives == number:
            group.collectives = number - 1
        else:
            self._dropped += 1

    def follow(self, work, entry, is_measured):
        """Has an operation end when its work is waited for, or is seen to be complete."""
        began_ns = self.timer() if is_measured else 0
        works = self.works
        try:
            entry[WORK] = weakref.ref(work)
            if len(works) < MOST_WORKS:
                works[id(work)] = entry
            else:
                self._forget(entry)
        except TypeError:
            # No work: a rank, or nothing from a backend that joins operations.
            if work is None:
                self._forget(entry)
            else:
                entry[END_NS] = time.monotonic_ns()
        if began_ns:
            self.timed(began_ns)

    def _forget(self, entry):
        """It will stay unknown when an operation has ended."""
        entry[END_NS] = FORGOTTEN
        self._dropped += 1

    def timer(self):
        """Begins to measure. It measures nothing first: behind a step that has filled the caches
        with its own, that takes longer than what is to be measured, and calls that are not measured
        do not take it."""
        overhead_ns, first_ns = self.overhead_ns, time.thread_time_ns()
        self.timed(first_ns)
        began_ns = time.thread_time_ns()
        self.overhead_ns = overhead_ns + began_ns - first_ns
        return began_ns

    def timed(self, began_ns):
        """Adds what a call cost that was measured, and what those cost that were not."""
        self.overhead_ns += TIMED_OF * (time.thread_time_ns() - began_ns)

    def dropped(self):
        """Counts what will not be posted."""
        self._dropped += 1

    def left_out(self):
        """A span turned out to be too short to be posted."""
        self._left_out += 1

    def error(self):
        """Counts a mistake of ours; after many, nothing more is reported."""
        self._errors += 1
        if self._errors >= MOST_ERRORS:
            self.stop()

    def stop(self):
        """Nothing more is reported."""
        self.is_working = False
        for forget in self.forgets:
            forget()

    def checkpoint_begins(self, is_explicit):
        with self._lock:
            if is_explicit:
                self._explicit += 1
            elif self._saving_since is None:
                self._saving_since = time.monotonic()
        self.start()
        if is_explicit:
            self._wake.set()

    def checkpoint_ends(self, is_explicit):
        with self._lock:
            if is_explicit:
                self._explicit -= 1
            else:
                self._saving_since = None

    # ---- for the job's owner ----

    def counts(self):
        groups, spans = list(self._numbered.values()), getattr(self.measured, "count", 0)
        reported = sum(group.collectives + group.transfers for group in groups) + spans
        unseen = max(reported - self._taken - len(self.queue), 0)
        return {
            "reported": reported - self._left_out,
            "spans": spans - self._left_out,
            "posted": self._posted,
            "dropped": self._dropped + unseen,
            "failed_posts": self._failed_posts,
            "refused_posts": self._refused_posts,
            "errors": self._errors,
            "overhead_seconds": self.overhead_ns / 1e9,  # CPU time of the job's threads
            "sender_cpu_seconds": self._sender_cpu_ns / 1e9,
        }

    def flush(self, timeout_seconds):
        until = time.monotonic() + timeout_seconds
        wanted = self._looks_begun + 1
        while self._thread is not None and self._looks_ended < wanted:
            if time.monotonic() > until:
                return False
            self._wake.set()
            time.sleep(0.005)
        return True

    # ---- on our own thread ----

    def start_spans(self, rank):
        """Starts the thread, and reports whether there is a rank that spans can be posted of: `RANK`,
        or else `rank`."""
        self.start()
        rank = rank if self._rank is None else self._rank
        if rank is not None and rank != self._span_rank:
            self._span_rank = rank
            self._heads.clear()
        return self.is_working and self._span_rank is not None

    def start(self):
        """Starts the thread if it does not run."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is not None:
                return
            # The environment is looked at now and not at import: a worker that was started ahead
            # gets its rank late.
            self._rank = _number("RANK")
            self._epoch = _number("TELLTALE_EPOCH")
            where = _post.place(os.environ.get("TELLTALE_LOG_CCL", ""))
            if where is None:
                self.stop()
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
            self._looks_begun += 1
            try:
                reached = self._look(connection)
            except Exception:
                self.error()
                reached = False
            pause = INTERVAL_SECONDS if reached else min(pause * 2, LONGEST_PAUSE_SECONDS)
            self._sender_cpu_ns = time.thread_time_ns()
            self._looks_ended = self._looks_begun

    def _look(self, connection):
        """Tells what there is. Says whether the agent could be reached."""
        entries, queue = self._living, self.queue
        pieces = []
        for _ in range(len(queue)):
            entry = queue.popleft()
            (entries if type(entry) in (list, tuple) else pieces).append(entry)
            self._taken += 1
        self._living = []
        if self.devices is not None:
            entries.extend(self.devices.resolve(pieces, self))
        reached = True
        for first in range(0, max(len(entries), 1), MOST_LINES_PER_POST):
            part = entries[first:first + MOST_LINES_PER_POST]
            reached = self._tell(connection, part, first == 0) and reached
        return reached

    def _tell(self, connection, entries, is_first):
        """Reports these operations, and keeps those still to report."""
        now_ns = time.monotonic_ns()
        excuses = self._excuse_lines() if is_first else []
        lines, ended, living = list(excuses), [], []
        heads, spans = self._heads, 0
        for entry in entries:
            if type(entry) is tuple:
                spans += 1
                name, start_ns, end_ns, step = entry
                lines.append(
                    f'{heads.get(name) or self._span_head(name)}{_step(step)},"startTime":'
                    f'{start_ns // 1000},"endTime":{end_ns // 1000},"finished":true}}'
                )
                continue
            if not entry[END_NS] and entry[WORK] is not None:
                self._end_if_complete(entry)
            # Another thread may write the end at any time.
            end_ns = entry[END_NS]
            if end_ns > 0 and entry[READY] is not None:
                end_ns = self._end_when_ready(entry, now_ns)
            if end_ns > 0:
                ended.append(entry)
            elif end_ns:
                continue
            else:
                living.append(entry)
                if entry[AGAIN_NS] > now_ns:
                    continue
            group, name, peer, size_bytes, number, start_ns = entry[:END_NS]
            if group.name is not None:
                lines.extend(self._group_lines(group))
            key = (group, name, peer, size_bytes)
            head = heads.get(key) or self._head(key)
            waited = _waited(entry) if end_ns and peer is not None else ""
            lines.append(
                f'{head}{number}{_step(entry[STEP])},"startTime":{start_ns // 1000},"endTime":{end_ns // 1000},'
                f'"finished":{"true" if end_ns else "false"}{waited}}}'
            )
        self._living.extend(living)
        if not lines:
            return True
        self._unfollow_ended()
        status = self._post(connection, lines)
        if status is not None and status < 300:
            self._posted += len(ended) + spans
            again_ns = now_ns + int(AGAIN_SECONDS * 1e9)
            for entry in living:
                if entry[AGAIN_NS] <= now_ns:
                    entry[AGAIN_NS] = again_ns
            return True
        self._groups_reported.clear()
        if excuses or self._is_excused:
            self._is_excused = None  # said again with the next post
        # The end of what was reported as under way is owed.
        owed = [entry for entry in ended if entry[AGAIN_NS]]
        self._dropped += len(ended) - len(owed) + spans
        self._living.extend(owed)
        return status is not None

    def _post(self, connection, lines):
        """Posts, and gives the answer's status; `None` where there is none."""
        body = "\n".join(lines).encode("utf-8")
        status = None
        try:
            status = connection.post(body)
        except OSError:
            # Perhaps the agent had closed the connection while nothing was reported.
            try:
                status = connection.post(body)
            except OSError:
                self._failed_posts += 1
        if status is not None and status >= 300:
            self._refused_posts += 1
        return status

    def _end_if_complete(self, entry):
        """Ends an operation that was not waited for yet but that is complete. One whose work is
        gone has ended at an unknown time: it is reported only if its being under way was."""
        work = entry[WORK]()
        if work is None:
            if not entry[END_NS] and entry[AGAIN_NS]:
                entry[END_NS] = time.monotonic_ns()
            elif not entry[END_NS]:
                self._forget(entry)
        else:
            is_complete = getattr(work, "is_completed", None) or work.done  # a work, or a future
            if is_complete() and not entry[END_NS]:
                entry[WAITS] = 1  # it may have ended up to a look ago
                entry[END_NS] = time.monotonic_ns()

    def _end_when_ready(self, entry, now_ns):
        """Has an operation begin when its device came to it. Gives its end, or 0 until that is known."""
        ready_ns = self.devices.moment_ns(entry[READY], self)
        end_ns = entry[END_NS]
        if ready_ns is None and now_ns - end_ns < READY_SECONDS * 1e9:
            return 0
        entry[READY] = None
        # Where a backend only queues it, it had not begun when it seemed to end.
        entry[START_NS] = max(entry[START_NS], ready_ns or 0)
        entry[END_NS] = max(end_ns, entry[START_NS])
        return entry[END_NS]

    def _unfollow_ended(self):
        """Forgets works whose end was seen in another way than by waiting for them."""
        works = self.works
        for key, entry in list(works.items()):
            if entry[END_NS] and works.get(key) is entry:
                works.pop(key, None)

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
        reported = self._groups_reported.get(group.name)
        if reported is not None and now - reported < GROUPS_AGAIN_SECONDS:
            return []
        if group.members is None:
            return []
        self._groups_reported[group.name] = now
        text = '{"opType":"group","group":%s,"ranks":%s%s}'
        ranks = json.dumps(group.members, separators=(",", ":"))
        return [text % (json.dumps(group.name), ranks, self._common())]

    def _head(self, key):
        """What is the same in all records of operations that are alike."""
        group, name, peer, size_bytes = key
        named = "" if group.name is None else ',"group":%s' % json.dumps(group.name)
        known = "" if self._rank is None else ',"global_rank":%d' % self._rank
        remote = "" if peer is None else ',"remoteRank":%d' % peer
        head = (
            '{"opType":"%s","bytes":%d%s,"context_rank":%d,"context_size":%d%s%s%s,'
            '"filename":"telltale_ccl","sequence":'
        ) % (name, size_bytes, remote, group.rank, group.size, named, known, self._common())
        return self._keep_head(key, head)

    def _span_head(self, name):
        head = '{"opType":"compute","name":%s,"global_rank":%d%s'
        return self._keep_head(name, head % (json.dumps(name), self._span_rank, self._common()))

    def _keep_head(self, key, head):
        if len(self._heads) >= MOST_HEADS:
            self._heads.clear()
        self._heads[key] = head
        return head

    def _common(self):
        return "" if self._epoch is None else ',"epoch":%d' % self._epoch


def _waited(entry):
    """What is said of a transfer whose time holds more than the transfer."""
    late = ',"late":true' if entry[LATE] else ""
    return late + (',"overlapped":true' if entry[WAITS] else "")


def _step(step):
    return "" if step is None else f',"step":{step}'


def _number(variable):
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None


_RECORDER = Recorder()


def recorder():
    """The process's recorder."""
    return _RECORDER


@contextlib.contextmanager
def checkpoint():
    """Says that what happens within is slow on purpose."""
    _RECORDER.checkpoint_begins(True)
    try:
        yield
    finally:
        _RECORDER.checkpoint_ends(True)


def _at_exit():
    # Another process than the reporting one, say one of a pool, has nothing to say.
    if _RECORDER._pid == os.getpid():
        _RECORDER.flush(EXIT_SECONDS)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RECORDER._reset)
