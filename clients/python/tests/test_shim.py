"""What the shim does apart from PyTorch: places, posts, hooks of process groups that are made up."""

import http.server
import json
import os
import sys
import threading
import time
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from telltale_ccl import _cuda, _hooks, _post, _record, _spans, _steps  # noqa: E402


class Agent(http.server.ThreadingHTTPServer):
    """Answers as the test wants, and keeps what was posted."""

    daemon_threads = True

    def __init__(self, status=200):
        agent = self
        self.lines, self.status = [], status

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode("utf-8")
                agent.lines.extend(json.loads(line) for line in body.splitlines())
                answer = b'{"message":"Processed"}'
                self.send_response(agent.status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def place(self):
        return "http://127.0.0.1:%d" % self.server_address[1]

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def recorder(place, rank="2"):
    os.environ.update({"TELLTALE_LOG_CCL": place, "TELLTALE_EPOCH": "5", "RANK": rank})
    return _record.Recorder()


def everybody():
    return _record.Group(1, 4, None, None, True)


def pair():
    return _record.Group(0, 2, 'torch/"1', [2, 3], True)


class Work:
    """What an asynchronous operation gives."""

    is_over = False

    def is_completed(self):
        return self.is_over


class Places(unittest.TestCase):
    def test_only_this_machine_is_posted_to(self):
        import socket

        good = {
            "": (socket.AF_INET, ("127.0.0.1", 8081), "127.0.0.1:8081"),
            "http://localhost:81/log_ccl": (socket.AF_INET, ("127.0.0.1", 81), "localhost:81"),
            "127.0.0.2:9": (socket.AF_INET, ("127.0.0.2", 9), "127.0.0.2:9"),
            "http://[::1]:9": (socket.AF_INET6, ("::1", 9), "[::1]:9"),
            "unix:/run/a.sock": (socket.AF_UNIX, "/run/a.sock", "localhost"),
            "unix:///run/a.sock": (socket.AF_UNIX, "/run/a.sock", "localhost"),
        }
        for text, expected in good.items():
            self.assertEqual(_post.place(text), expected, text)
        for text in ("10.0.0.1:80", "evil.example:80", "127.0.0.1", "127.0.0.1:x", "unix:a", "[::1]"):
            self.assertIsNone(_post.place(text), text)


class Posts(unittest.TestCase):
    def begun(self, recorded, group, name="allreduce", peer=None, size_bytes=8):
        self.assertTrue(recorded.numbered(group))
        return recorded.began(group, name, peer, size_bytes)

    def test_what_has_ended_is_told_once_with_its_number_group_and_epoch(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            group = everybody()
            sent = [self.begun(recorded, group, "send", 3, 64) for _ in range(2)][-1]
            sent[_record.START_NS:_record.WORK] = [7_000, 9_500]
            recorded.queue.popleft()
            self.begun(recorded, pair())[_record.END_NS] = 10**18
            self.assertTrue(recorded.flush(5))
            self.assertEqual((recorded.counts()["posted"], recorded.counts()["errors"]), (2, 0))
        send, members, reduce = agent.lines
        expected = {
            "opType": "send", "bytes": 64, "startTime": 7, "endTime": 9, "finished": True,
            "remoteRank": 3, "context_rank": 1, "context_size": 4, "global_rank": 2, "epoch": 5,
            "sequence": 2, "filename": "telltale_ccl",
        }
        self.assertEqual(send, expected)
        expected = {"opType": "group", "group": 'torch/"1', "ranks": [2, 3], "epoch": 5}
        self.assertEqual(members, expected)
        recorded = (reduce["group"], reduce["sequence"], reduce["finished"], "remoteRank" in reduce)
        self.assertEqual(recorded, ('torch/"1', 1, True, False))

    def test_what_lasts_is_told_to_be_under_way_and_its_end_is_owed(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            lasting = self.begun(recorded, everybody())
            self.assertTrue(recorded.flush(5))
            self.assertTrue(recorded.flush(5))
            agent.status = 503
            lasting[_record.END_NS] = 10**18
            self.begun(recorded, pair())[_record.END_NS] = 10**18
            self.assertTrue(recorded.flush(5))
            agent.status = 200
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        lines = [line for line in agent.lines if line["opType"] == "allreduce"]
        lines = [(line["context_size"], line["finished"]) for line in lines]
        # The refused post has both ends; only the one that was announced comes again.
        self.assertEqual(lines[:3], [(4, False), (4, True), (2, True)])
        self.assertEqual(set(lines[3:]), {(4, True)})
        self.assertEqual((counts["posted"], counts["dropped"]), (1, 1))

    def test_a_work_ends_when_it_is_complete_or_is_not_told_when_it_is_gone(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            group, complete, gone = everybody(), Work(), Work()
            for work in (complete, gone):
                recorded.follow(work, self.begun(recorded, group), 0)
            complete.is_over = True
            del work, gone
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        self.assertEqual([(line["sequence"], line["finished"]) for line in agent.lines], [(1, True)])
        self.assertEqual((counts["reported"], counts["posted"], counts["dropped"]), (2, 1, 1))
        self.assertEqual(recorded.works, {})

    def test_numbers_of_operations_that_failed_are_free_and_those_of_a_group_made_anew_go_on(self):
        recorded = recorder("127.0.0.1:1")
        group = everybody()
        self.begun(recorded, group)
        recorded.failed(self.begun(recorded, group))
        self.assertEqual(self.begun(recorded, group)[_record.NUMBER], 2)
        self.assertEqual(self.begun(recorded, everybody())[_record.NUMBER], 3)

    def test_a_transfer_that_waited_says_so_and_one_whose_end_was_only_noticed(self):
        with Agent() as agent:
            recorded, group, noticed = recorder(agent.place()), everybody(), Work()
            for late, waits in ((False, 0), (True, 0), (False, 3)):
                sent = self.begun(recorded, group, "send", 3)
                sent[_record.LATE], sent[_record.WAITS] = late, waits
                sent[_record.END_NS] = 10**18
            recorded.follow(noticed, self.begun(recorded, group, "send", 3), 0)
            noticed.is_over = True
            self.assertTrue(recorded.flush(5))
        said = [(line.get("late"), line.get("overlapped")) for line in agent.lines]
        self.assertEqual(said, [(None, None), (True, None), (None, True), (None, True)])

    def test_without_an_agent_it_is_dropped_and_counted(self):
        with Agent() as agent:
            gone = agent.place()
        recorded, group = recorder(gone), everybody()
        for _ in range(_record.MOST_QUEUED + 5):
            self.begun(recorded, group, "send", 3)[_record.END_NS] = 10**18
        self.assertTrue(recorded.flush(30))
        counts = recorded.counts()
        self.assertEqual((counts["posted"], counts["errors"]), (0, 0))
        self.assertEqual(counts["dropped"], _record.MOST_QUEUED + 5)
        self.assertGreaterEqual(counts["failed_posts"], 1)

    def test_an_agent_that_refuses_is_told_of_groups_again(self):
        with Agent(503) as agent:
            recorded, group = recorder(agent.place()), pair()
            for status in (503, 200):
                agent.status = status
                self.begun(recorded, group, "barrier")[_record.END_NS] = 10**18
                self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        self.assertEqual((counts["posted"], counts["dropped"]), (1, 1))
        kinds = [line["opType"] for line in agent.lines]
        self.assertEqual(kinds, ["group", "barrier"] * 2)

    def test_a_long_save_excuses_and_a_short_one_does_not(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            recorded.checkpoint_begins(False)
            recorded.checkpoint_ends(False)
            self.begun(recorded, everybody(), "barrier")
            self.assertTrue(recorded.flush(5))
            self.assertEqual([line["opType"] for line in agent.lines], ["barrier"])
            recorded.checkpoint_begins(True)
            self._wait(lambda: len(agent.lines) == 2)
            recorded.checkpoint_ends(True)
            self._wait(lambda: len(agent.lines) == 3)
        said = [(line["opType"], line["global_rank"], line["finished"]) for line in agent.lines[1:]]
        self.assertEqual(said, [("checkpoint", 2, False), ("checkpoint", 2, True)])

    def _wait(self, condition):
        until = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)


class FakeFuture:
    def add_done_callback(self, callback):
        self.callback = callback


class FakeWork:
    def __init__(self):
        self.future = FakeFuture()

    def get_future(self):
        return self.future


class FakeProcessGroup:
    """As PyTorch 2.15's `_distributed_c10d.pyi` describes it."""

    def register_pre_hook(self, hook_id, hook):
        self.pre = hook

    def register_post_hook(self, hook_id, hook):
        self.post = hook

    def issue(self, name, root, op_id, work):
        name = types.SimpleNamespace(name=name)
        self.pre(types.SimpleNamespace(
            name=name, async_op=True, input_tensors=[1, 2], output_tensors=[], root=root, op_id=op_id,
        ))
        self.post(types.SimpleNamespace(name=name, async_op=True, work=work, op_id=op_id))


class Hooks(unittest.TestCase):
    def setUp(self):
        self.queue = _record.recorder().queue
        self.queue.clear()

    def test_an_operation_ends_with_its_future(self):
        group, work = FakeProcessGroup(), FakeWork()
        self.assertTrue(_hooks.register(group, everybody(), len))
        group.issue("ALLREDUCE", -1, 9, work)
        (recorded,) = self.queue
        self.assertEqual(recorded[_record.NAME:_record.START_NS], ["allreduce", None, 2, 1])
        self.assertEqual(recorded[_record.END_NS], 0)
        work.future.callback(work.future)
        self.assertGreater(recorded[_record.END_NS], 0)

    def test_transfers_are_left_to_the_functions(self):
        group = FakeProcessGroup()
        _hooks.register(group, everybody(), len)
        for number, name in enumerate(("SEND", "RECV", "SPLIT")):
            group.issue(name, 3, number, None)
        self.assertEqual(list(self.queue), [])
        group.issue("BARRIER", -1, 9, None)
        (recorded,) = self.queue
        self.assertGreater(recorded[_record.END_NS], 0)

    def test_a_group_without_hooks_is_left(self):
        self.assertFalse(_hooks.register(object(), everybody(), len))


def opened(spans, name, keeps, clock=None):
    span = _spans.Span(name, keeps)
    spans.begin(span, clock)
    return span


class Spans(unittest.TestCase):
    def test_a_span_has_the_rank_the_step_and_no_field_of_operations(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            spans = _spans.Spans(recorded)
            steps = _steps.Steps(recorded, spans)
            spans.start(0)
            steps.explicit()
            spans.end(opened(spans, 'a "b"', True))
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        (line,) = agent.lines
        self.assertLessEqual(line.pop("startTime"), line.pop("endTime"))
        expected = {
            "opType": "compute", "name": 'a "b"', "global_rank": 2, "epoch": 5, "step": 1,
            "finished": True,
        }  # fmt: skip
        self.assertEqual(line, expected)
        self.assertEqual((counts["reported"], counts["spans"], counts["posted"]), (1, 1, 1))

    def test_without_a_rank_there_are_no_spans_and_that_of_the_group_will_do(self):
        with Agent() as agent:
            recorded = recorder(agent.place(), rank="")
            spans = _spans.Spans(recorded)
            self.assertIsNone(spans.begin_named("early", None))
            spans.start(7)
            spans.end(spans.begin_named("late", None))
            self.assertTrue(recorded.flush(5))
        self.assertEqual([(line["name"], line["global_rank"]) for line in agent.lines], [("late", 7)])

    def test_spans_that_do_not_fit_into_the_queue_are_dropped_and_counted(self):
        with Agent() as agent:
            gone = agent.place()
        recorded = recorder(gone)
        spans = _spans.Spans(recorded)
        spans.start(0)
        for _ in range(_record.MOST_QUEUED + 5):
            spans.end(opened(spans, "x", True))
        self.assertTrue(recorded.flush(30))
        counts = recorded.counts()
        self.assertEqual(counts["posted"], 0)
        self.assertEqual(counts["dropped"], _record.MOST_QUEUED + 5)
        self.assertEqual(counts["spans"], _record.MOST_QUEUED + 5)

    def test_spans_that_are_closed_out_of_order_leave_nothing_open(self):
        recorded = recorder("127.0.0.1:1")
        spans = _spans.Spans(recorded)
        spans.start(0)
        outer = opened(spans, "outer", False)
        inner = opened(spans, "inner", True)
        self.assertTrue(spans.keeps)
        spans.end(outer)
        self.assertIsNone(spans.top)
        self.assertFalse(spans.keeps)
        spans.end(inner)
        self.assertIsNone(spans.top)
        self.assertEqual(recorded.counts()["errors"], 0)


    def test_of_short_steps_those_are_measured_that_a_power_of_two_divides(self):
        def measured(*durations_ms):
            """The steps that are measured; of each in `durations_ms` there are a hundred."""
            now, chosen = [10**12], []
            spans = _spans.Spans(recorder("127.0.0.1:1"))
            spans.start(0)
            spans.now = lambda: now[0]
            for step in range(100 * len(durations_ms)):
                if not spans.skips:
                    chosen.append(step)
                self.assertEqual(spans.keeps, spans.skips)
                now[0] += int(1e6 * durations_ms[step // 100])
                spans.next_step()
            return chosen

        many = _spans.MANY_STEPS
        self.assertEqual(measured(100, 100), list(range(200)))
        short = measured(12, 12)
        self.assertEqual(short[:many], list(range(many)))
        self.assertEqual(short[-8:], list(range(80, 200, 16)))
        # Ranks that differ measure the same steps of those that the slower ones do.
        self.assertLess(set(measured(5, 5)[many:]), set(short))
        # When steps become long, each is measured again.
        self.assertEqual(measured(12, 100)[-80:], list(range(120, 200)))


class FakeStream:
    """A stream whose events are over `lag_ns` after they were recorded."""

    def __init__(self, _index=0, lag_ns=0):
        self.lag_ns = lag_ns


class FakeEvent:
    def __init__(self, cuda):
        self.cuda, self.at_ns = cuda, None

    def record(self, stream):
        self.cuda.asked()
        self.at_ns = time.monotonic_ns() + stream.lag_ns

    def query(self):
        self.cuda.asked()
        return time.monotonic_ns() >= self.at_ns

    def elapsed_time(self, end):
        assert self.query() and end.query()
        return (end.at_ns - self.at_ns) / 1e6


class FakeCuda:
    """As much of `torch.cuda` as is used, with a device that is `lag_ns` behind its host."""

    def __init__(self, lag_ns=0):
        cuda = self
        self.stream, self.is_captured, self.is_broken = FakeStream(0, lag_ns), False, False

        class CUDAGraph:
            def capture_begin(self):
                cuda.is_captured = True

            def capture_end(self):
                cuda.is_captured = False

        self.CUDAGraph, self.Stream = CUDAGraph, FakeStream

    def Event(self, enable_timing):
        assert enable_timing
        return FakeEvent(self)

    def current_stream(self, index):
        assert index == 3
        return self.stream

    def asked(self):
        assert not self.is_captured, "an event was asked for within a capture"
        if self.is_broken:
            raise RuntimeError("CUDA error")


class FakeTensor:
    def __init__(self, index=None):
        self.is_cuda = index is not None
        self.device = types.SimpleNamespace(index=index)


class Devices(unittest.TestCase):
    def begin(self, agent, lag_ns=0):
        """A recorder, its spans, a CUDA and the clock of its device, which has a base by now."""
        recorded = recorder(agent.place())
        spans, cuda = _spans.Spans(recorded), FakeCuda(lag_ns)
        recorded.devices = devices = _cuda.Devices(cuda, FakeTensor)
        devices.patch_captures()
        spans.start(0)
        clock = devices.clock(([FakeTensor()], {"x": FakeTensor(3)}))
        self.assertTrue(recorded.flush(5))
        return recorded, spans, cuda, clock

    def test_a_span_has_the_times_of_the_device_on_the_host_s_clock(self):
        lag_ns = 50_000_000
        with Agent() as agent:
            recorded, spans, _, clock = self.begin(agent, lag_ns)
            began_ns = time.monotonic_ns()
            span = opened(spans, "forward", True, clock)
            time.sleep(0.02)
            spans.end(span)
            ended_ns = time.monotonic_ns()
            self.assertTrue(recorded.flush(5))
            self.assertEqual(agent.lines, [])
            time.sleep(0.05)
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        (line,) = agent.lines
        error_us = _cuda.BASE_ERROR_NS // 1000
        self.assertGreaterEqual(line["startTime"], (began_ns + lag_ns) // 1000 - error_us)
        self.assertLessEqual(line["endTime"], (ended_ns + lag_ns) // 1000 + error_us)
        self.assertGreaterEqual(line["endTime"] - line["startTime"], 20_000 - 1)
        self.assertEqual((counts["posted"], counts["dropped"], counts["errors"]), (1, 0, 0))

    def test_waits_cut_a_device_s_spans_and_events_are_used_again(self):
        with Agent() as agent:
            recorded, spans, _, clock = self.begin(agent)
            for _ in range(3):
                span = opened(spans, "backward", True, clock)
                time.sleep(0.001)
                spans.cut(spans.mark())
                time.sleep(0.001)
                spans.unmark(spans.mark())
                spans.pause(0)
                self.assertIsNone(spans.mark())
                time.sleep(0.001)
                spans.resume(0)
                spans.end(span)
                self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        # What follows the sums is too short.
        self.assertEqual([line["name"] for line in agent.lines], ["backward"] * 6)
        self.assertEqual((counts["reported"], counts["posted"], counts["dropped"]), (6, 6, 0))
        self.assertLessEqual(len(clock._free), 8)

    def operation(self, recorded, cuda_tensor, name="all_reduce"):
        """An operation that the host begins and ends at once, and what it began and ended at."""
        entry = recorded.began(everybody(), name, None, 8)
        recorded.ready(entry, recorded.devices.clock_of([cuda_tensor]))
        entry[_record.END_NS] = end_ns = entry[_record.START_NS] + 1_000_000
        return entry[_record.START_NS], end_ns

    def test_an_operation_begins_when_its_device_has_computed_what_is_passed_on(self):
        lag_ns = 50_000_000
        with Agent() as agent:
            recorded, _, _, _ = self.begin(agent, lag_ns)
            start_ns, _ = self.operation(recorded, FakeTensor(3))
            self.assertTrue(recorded.flush(5))
            # It is under way as far as is known: a device that hangs is seen.
            (under_way,) = agent.lines
            self.assertFalse(under_way["finished"])
            time.sleep(0.06)
            self.assertTrue(recorded.flush(5))
            line = agent.lines[-1]
        self.assertTrue(line["finished"])
        error_us = _cuda.BASE_ERROR_NS // 1000
        self.assertGreaterEqual(line["startTime"], (start_ns + lag_ns) // 1000 - error_us)
        # The host only queued it: how long it took is not known, and not less than nothing.
        self.assertEqual(line["startTime"], line["endTime"])

    def test_an_operation_on_the_host_keeps_its_times(self):
        with Agent() as agent:
            recorded, _, _, _ = self.begin(agent)
            start_ns, end_ns = self.operation(recorded, FakeTensor())
            self.assertTrue(recorded.flush(5))
            (line,) = agent.lines
        self.assertEqual((line["startTime"], line["endTime"]), (start_ns // 1000, end_ns // 1000))

    def test_of_a_device_that_is_broken_the_host_s_times_are_told(self):
        with Agent() as agent:
            recorded, _, cuda, _ = self.begin(agent)
            start_ns, end_ns = self.operation(recorded, FakeTensor(3))
            cuda.is_broken = True
            self.assertTrue(recorded.flush(5))
            (line,) = agent.lines
            self.assertEqual(recorded.counts()["errors"], 1)
        self.assertEqual((line["startTime"], line["endTime"]), (start_ns // 1000, end_ns // 1000))

    def test_nothing_is_asked_for_while_a_graph_is_captured(self):
        with Agent() as agent:
            recorded, spans, cuda, clock = self.begin(agent)
            before, graph = opened(spans, "before", True, clock), cuda.CUDAGraph()
            spans.end(before)
            graph.capture_begin()
            spans.end(opened(spans, "within", True, clock))
            self.assertTrue(recorded.flush(5))
            self.assertEqual(agent.lines, [])
            graph.capture_end()
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        self.assertEqual([line["name"] for line in agent.lines], ["before"])
        self.assertEqual((counts["posted"], counts["dropped"], counts["errors"]), (1, 1, 0))

    def test_spans_before_there_is_a_base_and_those_that_never_end_are_dropped(self):
        with Agent() as agent:
            recorded = recorder(agent.place())
            spans = _spans.Spans(recorded)
            recorded.devices = devices = _cuda.Devices(FakeCuda(10**12), FakeTensor)
            spans.start(0)
            clock = devices.clock([FakeTensor(3)])
            spans.end(opened(spans, "early", True, clock))
            self.assertTrue(recorded.flush(5))
            self.assertEqual(recorded.counts()["dropped"], 1)
            for _ in range(_cuda.MOST_PENDING + 2):
                spans.end(opened(spans, "x", True, clock))
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        self.assertEqual((counts["posted"], counts["dropped"], counts["errors"]), (0, 3, 0))
        self.assertEqual(agent.lines, [])

    def test_an_error_of_the_device_is_counted_raises_nothing_and_ends_its_spans(self):
        with Agent() as agent:
            recorded, spans, cuda, clock = self.begin(agent)
            spans.end(opened(spans, "x", True, clock))
            cuda.is_broken = True
            for _ in range(200):
                spans.end(opened(spans, "y", True, clock))
            self.assertTrue(recorded.flush(5))
            cuda.is_broken = False
            spans.end(opened(spans, "host", True))
            self.assertTrue(recorded.flush(5))
            counts = recorded.counts()
        self.assertEqual([line["name"] for line in agent.lines], ["host"])
        self.assertEqual(counts["errors"], 1)
        self.assertEqual(counts["reported"], counts["posted"] + counts["dropped"])

    def test_the_device_is_that_of_the_first_tensor_that_is_on_one(self):
        devices = _cuda.Devices(FakeCuda(), FakeTensor)
        self.assertIsNone(devices.clock((), {}))
        clock = devices.clock((FakeTensor(), [1, FakeTensor(3)]), {"x": FakeTensor(4)})
        self.assertIs(devices.clock((), {"x": {"y": FakeTensor(3)}}), clock)
        self.assertIs(devices.clock(("no tensor",), {}), clock)
        self.assertIsNone(devices.clock((FakeTensor(),), {}))


if __name__ == "__main__":
    unittest.main()
