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

from telltale_ccl import _hooks, _post, _record  # noqa: E402


class Agent(http.server.ThreadingHTTPServer):
    """Answers as it is told to, and keeps what was posted."""

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
    def begun(self, told, group, name="allreduce", peer=None, size_bytes=8):
        self.assertTrue(told.numbered(group))
        return told.began(group, name, peer, size_bytes)

    def test_what_has_ended_is_told_once_with_its_number_group_and_epoch(self):
        with Agent() as agent:
            told = recorder(agent.place())
            group = everybody()
            sent = [self.begun(told, group, "send", 3, 64) for _ in range(2)][-1]
            sent[_record.START_NS:_record.WORK] = [7_000, 9_500]
            told.queue.popleft()
            self.begun(told, pair())[_record.END_NS] = 10**18
            self.assertTrue(told.flush(5))
            self.assertEqual((told.figures()["posted"], told.figures()["errors"]), (2, 0))
        send, members, reduce = agent.lines
        expected = {
            "opType": "send", "bytes": 64, "startTime": 7, "endTime": 9, "finished": True,
            "remoteRank": 3, "context_rank": 1, "context_size": 4, "global_rank": 2, "epoch": 5,
            "sequence": 2, "filename": "telltale_ccl",
        }
        self.assertEqual(send, expected)
        expected = {"opType": "group", "group": 'torch/"1', "ranks": [2, 3], "epoch": 5}
        self.assertEqual(members, expected)
        told = (reduce["group"], reduce["sequence"], reduce["finished"], "remoteRank" in reduce)
        self.assertEqual(told, ('torch/"1', 1, True, False))

    def test_what_lasts_is_told_to_be_under_way_and_its_end_is_owed(self):
        with Agent() as agent:
            told = recorder(agent.place())
            lasting = self.begun(told, everybody())
            self.assertTrue(told.flush(5))
            self.assertTrue(told.flush(5))
            agent.status = 503
            lasting[_record.END_NS] = 10**18
            self.begun(told, pair())[_record.END_NS] = 10**18
            self.assertTrue(told.flush(5))
            agent.status = 200
            self.assertTrue(told.flush(5))
            figures = told.figures()
        lines = [line for line in agent.lines if line["opType"] == "allreduce"]
        lines = [(line["context_size"], line["finished"]) for line in lines]
        # The refused post has both ends; only the one that was announced comes again.
        self.assertEqual(lines[:3], [(4, False), (4, True), (2, True)])
        self.assertEqual(set(lines[3:]), {(4, True)})
        self.assertEqual((figures["posted"], figures["dropped"]), (1, 1))

    def test_a_work_ends_when_it_is_complete_or_is_not_told_when_it_is_gone(self):
        with Agent() as agent:
            told = recorder(agent.place())
            group, complete, gone = everybody(), Work(), Work()
            for work in (complete, gone):
                told.follow(work, self.begun(told, group), 0)
            complete.is_over = True
            del work, gone
            self.assertTrue(told.flush(5))
            figures = told.figures()
        self.assertEqual([(line["sequence"], line["finished"]) for line in agent.lines], [(1, True)])
        self.assertEqual((figures["told"], figures["posted"], figures["dropped"]), (2, 1, 1))
        self.assertEqual(told.works, {})

    def test_numbers_of_operations_that_failed_are_free_and_those_of_a_group_made_anew_go_on(self):
        told = recorder("127.0.0.1:1")
        group = everybody()
        self.begun(told, group)
        told.failed(self.begun(told, group))
        self.assertEqual(self.begun(told, group)[_record.NUMBER], 2)
        self.assertEqual(self.begun(told, everybody())[_record.NUMBER], 3)

    def test_a_transfer_that_waited_says_so_and_one_whose_end_was_only_noticed(self):
        with Agent() as agent:
            told, group, noticed = recorder(agent.place()), everybody(), Work()
            for late, waits in ((False, 0), (True, 0), (False, 3)):
                sent = self.begun(told, group, "send", 3)
                sent[_record.LATE], sent[_record.WAITS] = late, waits
                sent[_record.END_NS] = 10**18
            told.follow(noticed, self.begun(told, group, "send", 3), 0)
            noticed.is_over = True
            self.assertTrue(told.flush(5))
        said = [(line.get("late"), line.get("overlapped")) for line in agent.lines]
        self.assertEqual(said, [(None, None), (True, None), (None, True), (None, True)])

    def test_without_an_agent_it_is_dropped_and_counted(self):
        with Agent() as agent:
            gone = agent.place()
        told, group = recorder(gone), everybody()
        for _ in range(_record.MOST_QUEUED + 5):
            self.begun(told, group, "send", 3)[_record.END_NS] = 10**18
        self.assertTrue(told.flush(30))
        figures = told.figures()
        self.assertEqual((figures["posted"], figures["errors"]), (0, 0))
        self.assertEqual(figures["dropped"], _record.MOST_QUEUED + 5)
        self.assertGreaterEqual(figures["failed_posts"], 1)

    def test_an_agent_that_refuses_is_told_of_groups_again(self):
        with Agent(503) as agent:
            told, group = recorder(agent.place()), pair()
            for status in (503, 200):
                agent.status = status
                self.begun(told, group, "barrier")[_record.END_NS] = 10**18
                self.assertTrue(told.flush(5))
            figures = told.figures()
        self.assertEqual((figures["posted"], figures["dropped"]), (1, 1))
        kinds = [line["opType"] for line in agent.lines]
        self.assertEqual(kinds, ["group", "barrier"] * 2)

    def test_a_long_save_excuses_and_a_short_one_does_not(self):
        with Agent() as agent:
            told = recorder(agent.place())
            told.checkpoint_begins(False)
            told.checkpoint_ends(False)
            self.begun(told, everybody(), "barrier")
            self.assertTrue(told.flush(5))
            self.assertEqual([line["opType"] for line in agent.lines], ["barrier"])
            told.checkpoint_begins(True)
            self._wait(lambda: len(agent.lines) == 2)
            told.checkpoint_ends(True)
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
        (told,) = self.queue
        self.assertEqual(told[_record.NAME:_record.START_NS], ["allreduce", None, 2, 1])
        self.assertEqual(told[_record.END_NS], 0)
        work.future.callback(work.future)
        self.assertGreater(told[_record.END_NS], 0)

    def test_transfers_are_left_to_the_functions(self):
        group = FakeProcessGroup()
        _hooks.register(group, everybody(), len)
        for number, name in enumerate(("SEND", "RECV", "SPLIT")):
            group.issue(name, 3, number, None)
        self.assertEqual(list(self.queue), [])
        group.issue("BARRIER", -1, 9, None)
        (told,) = self.queue
        self.assertGreater(told[_record.END_NS], 0)

    def test_a_group_without_hooks_is_left(self):
        self.assertFalse(_hooks.register(object(), everybody(), len))


if __name__ == "__main__":
    unittest.main()
