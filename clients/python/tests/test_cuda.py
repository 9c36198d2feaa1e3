"""Spans on a real CUDA device: as long as the device took, and at that time of the host. Skips without a device."""

import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from test_shim import Agent  # noqa: E402

AGENT = Agent()
os.environ.update({"TELLTALE_LOG_CCL": AGENT.place(), "TELLTALE_EPOCH": "5", "RANK": "0", "TELLTALE_CCL_SPANS": "all"})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import telltale_ccl  # noqa: E402

telltale_ccl.install()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

HAS_DEVICE = torch.cuda.is_available()
SIZE = 2048
# What a span may be off by: our own events lie outside of it, and the base is known to 100 us.
LONGER_US, SHIFTED_US = 300, 500


class Products(torch.nn.Module):
    """As many products of matrices as given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(SIZE, device="cuda"))

    def forward(self, rows, count):
        for _ in range(count):
            rows = rows @ self.weight
        return rows


@unittest.skipUnless(HAS_DEVICE, "no CUDA device")
class Device(unittest.TestCase):
    def setUp(self):
        self.model = Products()
        self.rows = torch.ones(SIZE, SIZE, device="cuda")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-9)
        # The first second has no spans: the device's clock is not known yet.
        until = time.monotonic() + 4
        while time.monotonic() < until:
            self.step(1)

    def step(self, count):
        """A step, and how long its forward pass took by events of our own, in microseconds."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.optimizer.zero_grad()
        begin.record()
        result = self.model(self.rows, count)
        end.record()
        result.mean().backward()
        self.optimizer.step()
        torch.cuda.synchronize()
        return 1000 * begin.elapsed_time(end)

    def forwards(self, run):
        assert telltale_ccl.flush(10)
        before = len(AGENT.lines)
        run()
        # Events are asked for once a second.
        time.sleep(2.5)
        assert telltale_ccl.flush(10)
        return [line for line in AGENT.lines[before:] if line.get("name") == "forward"]

    def test_a_span_is_as_long_as_the_device_took(self):
        counts, took = [1, 2, 4, 8, 16, 32], []
        spans = self.forwards(lambda: took.extend(self.step(count) for count in counts))
        self.assertEqual(len(spans), len(counts))
        for span, own_us in zip(spans, took):
            span_us = span["endTime"] - span["startTime"]
            print(f"forward: span {span_us} us, device {own_us:.0f} us")
            self.assertLess(abs(span_us - own_us), LONGER_US + 0.05 * own_us)

    def test_a_span_is_at_the_host_s_time_at_which_the_device_worked(self):
        bounds = []

        def run():
            for _ in range(10):
                torch.cuda.synchronize()
                before = time.monotonic_ns() // 1000
                self.step(32)
                bounds.append((before, time.monotonic_ns() // 1000))

        spans = self.forwards(run)
        self.assertEqual(len(spans), len(bounds))
        for span, (before, after) in zip(spans, bounds):
            print(f"span from {span['startTime'] - before} us after the step's begin to {after - span['endTime']} us before its end")
            self.assertGreater(span["startTime"], before - SHIFTED_US)
            self.assertLess(span["endTime"], after + SHIFTED_US)

    def test_a_collective_begins_when_the_device_has_computed_what_is_summed(self):
        assert telltale_ccl.flush(10)
        before = len(AGENT.lines)
        self.optimizer.zero_grad()
        self.model(self.rows, 64).mean().backward()
        asked_us = time.monotonic_ns() // 1000
        dist.all_reduce(self.model.weight.grad)
        self.optimizer.step()
        torch.cuda.synchronize()
        time.sleep(2.5)
        assert telltale_ccl.flush(10)
        lines = AGENT.lines[before:]
        (backward,) = [line for line in lines if line.get("name") == "backward"]
        (summed,) = [line for line in lines if line["opType"] == "all_reduce" and line["finished"]]
        print(f"asked for {backward['endTime'] - asked_us} us before the backward pass ended, "
              f"begun {summed['startTime'] - backward['endTime']} us after it")
        self.assertGreater(backward["endTime"], asked_us)
        self.assertGreaterEqual(summed["startTime"], backward["endTime"] - 2)
        self.assertLess(summed["startTime"], backward["endTime"] + 2000)

    def test_nothing_waits_for_the_device(self):
        torch.cuda.synchronize()
        begin = time.monotonic_ns()
        for _ in range(5):
            self.optimizer.zero_grad()
            self.model(self.rows, 64).mean().backward()
            self.optimizer.step()
        launched_ms = (time.monotonic_ns() - begin) / 1e6
        torch.cuda.synchronize()
        whole_ms = (time.monotonic_ns() - begin) / 1e6
        print(f"five steps: launched after {launched_ms:.1f} ms, done after {whole_ms:.1f} ms")
        self.assertLess(launched_ms, whole_ms / 2)

    def test_a_graph_is_captured_while_spans_are_measured(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            self.model(self.rows, 2)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.no_grad():
            result = self.model(self.rows, 2)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(bool(torch.isfinite(result).all()))
        self.assertTrue(self.forwards(lambda: self.step(4)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
