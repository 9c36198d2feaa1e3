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


GROUP = _record.Group(1, 4, None, None, True)
PAIR = _record.Group(0, 2, 'torch/"1', [2, 3], True)


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
    def test_what_is_told_is_posted_with_its_group_and_epoch(self):
        with Agent() as agent:
            told = recorder(agent.place())
            told.tell(_record.BEGIN, GROUP, "send", 7, 0, 3, 64)
            told.tell(_record.END, PAIR, "all_reduce", 7, 9, None, 8)
            self.assertTrue(told.flush(5))
            self.assertEqual((told.figures()["posted"], told.figures()["errors"]), (2, 0))
        send, pair, reduce = agent.lines
        expected = {
            "opType": "send", "bytes": 64, "startTime": 7, "endTime": 0, "finished": False,
            "remoteRank": 3, "context_rank": 1, "context_size": 4, "global_rank": 2, "epoch": 5,
            "filename": "telltale_ccl",
        }
        self.assertEqual(send, expected)
        expected = {"opType": "group", "group": 'torch/"1', "ranks": [2, 3], "epoch": 5}
        self.assertEqual(pair, expected)
        self.assertEqual((reduce["group"], reduce["finished"]), ('torch/"1', True))

    def test_without_an_agent_it_is_dropped_and_counted(self):
        with Agent() as agent:
            gone = agent.place()
        told = recorder(gone)
        for _ in range(_record.MOST_QUEUED + 5):
            told.tell(_record.BEGIN, GROUP, "send", 7, 0, 3, 64)
        told.flush(5)
        figures = told.figures()
        self.assertEqual((figures["posted"], figures["errors"]), (0, 0))
        self.assertGreaterEqual(figures["dropped"], 5)
        self.assertGreaterEqual(figures["failed_posts"], 1)

    def test_an_agent_that_refuses_is_told_of_groups_again(self):
        with Agent(503) as agent:
            told = recorder(agent.place())
            told.tell(_record.BEGIN, PAIR, "barrier", 7, 0, None, 0)
            self.assertTrue(told.flush(5))
            agent.status = 200
            told.tell(_record.END, PAIR, "barrier", 7, 8, None, 0)
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
            told.tell(_record.BEGIN, GROUP, "barrier", 7, 0, None, 0)
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
        self.told = []
        recorder = _record.recorder()
        self.tell, recorder.tell = recorder.tell, lambda *event: self.told.append(event)

    def tearDown(self):
        _record.recorder().tell = self.tell

    def test_an_operation_ends_with_its_future(self):
        group, work = FakeProcessGroup(), FakeWork()
        self.assertTrue(_hooks.register(group, GROUP, len))
        group.issue("ALLREDUCE", -1, 9, work)
        self.assertEqual([event[:3] for event in self.told], [(_record.BEGIN, GROUP, "allreduce")])
        work.future.callback(work.future)
        self.assertEqual(self.told[1][0], _record.END)
        self.assertEqual(self.told[1][6], 2)

    def test_transfers_have_a_peer_or_are_not_told(self):
        group = FakeProcessGroup()
        _hooks.register(group, GROUP, len)
        group.issue("SEND", 3, 1, None)
        group.issue("RECV", -1, 2, None)
        group.issue("SPLIT", -1, 3, None)
        self.assertEqual([event[2] for event in self.told], ["send", "send"])
        self.assertEqual(self.told[0][5], 3)

    def test_a_group_without_hooks_is_left(self):
        self.assertFalse(_hooks.register(object(), GROUP, len))


if __name__ == "__main__":
    unittest.main()
