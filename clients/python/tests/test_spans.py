"""Spans of compute and numbers of steps, with a real PyTorch. `test_shim.py` needs none."""

import copy
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from test_shim import Agent  # noqa: E402

AGENT = Agent()
os.environ.update({"TELLTALE_LOG_CCL": AGENT.place(), "TELLTALE_EPOCH": "5", "RANK": "0"})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import telltale_ccl  # noqa: E402
from telltale_ccl import _spans, _steps  # noqa: E402

# Before the process group, as scripts may do it.
EARLY = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)

telltale_ccl.install()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Layer(torch.nn.Module):
    """A module with modules in it."""

    def __init__(self, inner=None):
        super().__init__()
        self.inner = inner or torch.nn.Linear(16, 16)

    def forward(self, numbers):
        return self.inner(numbers).relu()


def model(depth=3):
    return Layer(model(depth - 1)) if depth else Layer()


def loss_of(one):
    return one(torch.ones(4, 16)).sum()


def lines_of(run):
    """What is posted of what `run` does, in the order of its begin."""
    _steps.steps().reset()
    spans = _spans.spans()
    spans.step, spans._mask = None, 0
    spans.skips = spans.at_rest = spans.keeps = False
    assert telltale_ccl.flush(10)
    before = len(AGENT.lines)
    run()
    assert telltale_ccl.flush(10)
    return sorted(AGENT.lines[before:], key=lambda line: line.get("startTime", 0))


def spans_of(run):
    lines = [line for line in lines_of(run) if line["opType"] == "compute"]
    for line, after in zip(lines, lines[1:]):
        assert line["startTime"] <= line["endTime"] <= after["startTime"], (line, after)
    return lines


def named(lines):
    return [(line["name"], line.get("step")) for line in lines]


class Passes(unittest.TestCase):
    def test_passes_and_steps_are_posted_in_order_with_the_number_of_the_step(self):
        def run():
            one = model()
            optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                loss_of(one).backward()
                optimizer.step()

        lines = spans_of(run)
        step = ("forward", "backward", "optimizer")
        self.assertEqual(named(lines), [(name, number) for number in range(3) for name in step])
        keys = {"opType", "name", "global_rank", "epoch", "step", "startTime", "endTime", "finished"}
        for line in lines:
            self.assertEqual(set(line), keys)
            self.assertEqual((line["global_rank"], line["epoch"], line["finished"]), (0, 5, True))

    def test_the_time_of_a_span_is_that_of_the_pass(self):
        class Slow(Layer):
            def forward(self, numbers):
                time.sleep(0.05)
                return super().forward(numbers)

        began_us = time.monotonic_ns() // 1000
        (line,) = spans_of(lambda: Layer(Slow())(torch.ones(4, 16)))
        self.assertGreaterEqual(line["endTime"] - line["startTime"], 50_000)
        self.assertGreaterEqual(line["startTime"], began_us)
        self.assertLessEqual(line["endTime"], time.monotonic_ns() // 1000)

    def test_passes_within_an_optimizer_have_spans_and_its_own_is_around_them(self):
        def run():
            one = model()
            optimizer = torch.optim.SGD(one.parameters(), lr=0.1)

            def closure():
                time.sleep(0.001)
                loss = loss_of(one)
                loss.backward()
                time.sleep(0.001)
                return loss

            for _ in range(2):
                optimizer.step(closure)

        spans = named(spans_of(run))
        for number in range(2):
            names = [name for name, step in spans if step == number]
            self.assertEqual((names[0], names[-1]), ("optimizer", "optimizer"))
            # Between the two it may have a piece.
            names = [name for name in names if name != "optimizer"]
            self.assertEqual(names, ["forward", "backward"])

    def test_passes_within_a_backward_pass_belong_to_it(self):
        from torch.utils.checkpoint import checkpoint

        def run():
            numbers = torch.ones(4, 16, requires_grad=True)
            checkpoint(model(), numbers).sum().backward()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual([name for name, _ in named(spans_of(run))], ["forward", "backward"])

    def test_gradients_that_are_asked_for_are_a_backward_pass_too(self):
        def run():
            numbers = torch.ones(4, 16, requires_grad=True)
            torch.autograd.grad(model()(numbers).sum(), numbers)

        self.assertEqual(named(spans_of(run)), [("forward", None), ("backward", None)])

    def test_what_a_pass_raises_is_raised_and_ends_the_span(self):
        def run():
            for _ in range(2):
                with self.assertRaises(RuntimeError):
                    model()(torch.ones(4, 15))
            with self.assertRaises(RuntimeError):
                torch.ones(1).backward()

        expected = [("forward", None)] * 2 + [("backward", 0)]
        self.assertEqual(named(spans_of(run)), expected)

    def test_only_the_thread_that_trains_is_measured(self):
        def elsewhere(run):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

        def run():
            elsewhere(lambda: model()(torch.ones(4, 16)))
            loss_of(model()).backward()
            # From here on another one trains.
            elsewhere(lambda: [loss_of(model()).backward() for _ in range(2)])
            model()(torch.ones(4, 16))
            loss_of(model()).backward()

        names = [name for name, _ in named(spans_of(run))]
        expected = ["forward", "backward", "backward", "forward", "backward", "backward"]
        self.assertEqual(names, expected)

    def test_a_forked_loader_of_data_posts_nothing(self):
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.transform = model()

            def __len__(self):
                return 4

            def __getitem__(self, index):
                with telltale_ccl.compute("transform"), torch.no_grad():
                    return self.transform(torch.ones(16))

        def run():
            for _ in torch.utils.data.DataLoader(Data(), num_workers=1):
                pass

        self.assertEqual(spans_of(run), [])


class Numbers(unittest.TestCase):
    def test_several_backward_passes_are_one_step_of_the_optimizer(self):
        def run():
            one = model()
            optimizer = torch.optim.Adam(one.parameters())
            for _ in range(2):
                for _ in range(3):
                    loss_of(one).backward()
                optimizer.step()
                dist.barrier()

        lines = lines_of(run)
        step = ["forward", "backward"] * 3 + ["optimizer"]
        spans = [line for line in lines if line["opType"] == "compute"]
        self.assertEqual(named(spans), [(name, number) for number in range(2) for name in step])
        barriers = [line["step"] for line in lines if line["opType"] == "barrier"]
        self.assertEqual(barriers, [1, 2])

    def test_of_two_optimizers_the_first_ends_the_step(self):
        def run():
            one, other = model(), model()
            optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (one, other)]
            for _ in range(2):
                for each, optimizer in zip((one, other), optimizers):
                    loss_of(each).backward()
                    optimizer.step()

        steps = [step for name, step in named(spans_of(run)) if name == "optimizer"]
        self.assertEqual(steps, [0, 1, 1, 2])

    def test_an_optimizer_that_steps_twice_takes_the_place_of_one_that_does_not(self):
        def run():
            one = model()
            first, second, third = (torch.optim.SGD(one.parameters(), lr=0.1) for _ in range(3))
            loss_of(one).backward()
            for optimizer in (first, second, third, second, third, second, third):
                optimizer.step()

        steps = [step for name, step in named(spans_of(run)) if name == "optimizer"]
        self.assertEqual(steps, [0, 1, 1, 1, 2, 2, 3])

    def test_an_optimizer_within_a_backward_pass_ends_the_step_with_it(self):
        def run():
            one = model(0)
            optimizers = [torch.optim.SGD([each], lr=0.1) for each in one.parameters()]
            for each, optimizer in zip(one.parameters(), optimizers):
                each.register_hook(lambda _, optimizer=optimizer: optimizer.step())
            for _ in range(2):
                loss_of(one).backward()

        step = ("forward", "backward")
        self.assertEqual(named(spans_of(run)), [(name, number) for number in range(2) for name in step])

    def test_an_optimizer_within_another_is_a_part_of_it(self):
        class Sharded(torch.optim.SGD):
            def step(self, closure=None):
                for _ in range(2):
                    self.inner.step()
                return super().step(closure)

        def run():
            one = model()
            optimizer = Sharded(one.parameters(), lr=0.1)
            optimizer.inner = torch.optim.SGD(one.parameters(), lr=0.1)
            for _ in range(2):
                loss_of(one).backward()
                optimizer.step()

        step = ("forward", "backward", "optimizer")
        self.assertEqual(named(spans_of(run)), [(name, number) for number in range(2) for name in step])

    def test_without_an_optimizer_backward_passes_end_steps(self):
        def run():
            model()(torch.ones(4, 16))
            dist.barrier()
            for _ in range(2):
                loss_of(model()).backward()

        lines = lines_of(run)
        spans = [line for line in lines if line["opType"] == "compute"]
        expected = [
            ("forward", None), ("forward", None), ("backward", 0), ("forward", 1), ("backward", 1),
        ]  # fmt: skip
        self.assertEqual(named(spans), expected)
        self.assertEqual([line for line in lines if "step" in line and line not in spans], [])

    def test_once_the_script_ends_steps_nothing_else_does(self):
        def run():
            one = model()
            optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
            for _ in range(3):
                loss_of(one).backward()
                for _ in range(2):
                    optimizer.step()
                    optimizer.step()
                telltale_ccl.step()

        # The first step is numbered before it is known that the script does it.
        steps = [step for name, step in named(spans_of(run)) if name == "backward"]
        self.assertEqual(steps, [0, 4, 5])
        self.assertEqual(named(spans_of(lambda: [telltale_ccl.step(), model()(torch.ones(4, 16))])),
                         [("forward", 1)])

    def test_an_optimizer_of_before_the_process_group_is_seen(self):
        def run():
            EARLY.step()
            EARLY.step()

        self.assertEqual(named(spans_of(run)), [("optimizer", 0), ("optimizer", 1)])


class ShortSteps(unittest.TestCase):
    MANY = _spans.MANY_STEPS

    def check(self, trainer, names, steps=200):
        """Only some of many short steps have spans, these have all, and each step is counted."""

        def run():
            train = trainer()
            for _ in range(steps):
                train()
            dist.barrier()

        lines = lines_of(run)
        barriers = [line["step"] for line in lines if line["opType"] == "barrier"]
        self.assertEqual(barriers, [steps])
        spans = named([line for line in lines if line["opType"] == "compute"])
        spans = spans[len(names) * self.MANY :]
        measured = [step for _, step in spans][:: len(names)]
        self.assertTrue(0 < len(measured) < (steps - self.MANY) // 2, measured)
        self.assertEqual(spans, [(name, step) for step in measured for name in names])
        # Once the steps are known to be short.
        self.assertEqual([step for step in measured[-2:] if step % 8], [])

    def test_steps_of_an_optimizer_are_counted(self):
        def trainer():
            one = model(0)
            optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
            return lambda: [loss_of(one).backward(), optimizer.step()]

        self.check(trainer, ["forward", "backward", "optimizer"])

    def test_steps_of_an_optimizer_within_another_are_counted_once(self):
        class Sharded(torch.optim.SGD):
            def step(self, closure=None):
                for _ in range(2):
                    self.inner.step()
                return super().step(closure)

        def trainer():
            one = model(0)
            optimizer = Sharded(one.parameters(), lr=0.1)
            optimizer.inner = torch.optim.SGD(one.parameters(), lr=0.1)

            def train():
                with telltale_ccl.compute("own"):
                    loss_of(one).backward()
                optimizer.step()

            return train

        self.check(trainer, ["own", "optimizer"])

    def test_steps_without_an_optimizer_are_counted(self):
        def trainer():
            one = model(0)
            return lambda: loss_of(one).backward()

        self.check(trainer, ["forward", "backward"])


class Waits(unittest.TestCase):
    def test_waits_are_cut_out_of_spans(self):
        class Reducing(Layer):
            def forward(self, numbers):
                time.sleep(0.001)
                dist.all_reduce(torch.ones(4))
                time.sleep(0.001)
                work = dist.all_reduce(torch.ones(4), async_op=True)
                time.sleep(0.001)
                work.wait()
                return numbers

        def run():
            with telltale_ccl.compute("own"):
                time.sleep(0.001)
                dist.barrier()
                time.sleep(0.001)
            Reducing()(torch.ones(1))

        lines = lines_of(run)
        spans = [line for line in lines if line["opType"] == "compute"]
        # Behind the last wait there is no work, but returning may take a piece's time.
        names = [line["name"] for line in spans[:4]]
        self.assertEqual(names, ["own", "own", "forward", "forward"])
        operations = [line for line in lines if line["opType"] != "compute"]
        self.assertEqual(len(operations), 3)
        for operation in operations[:2]:  # the third is not waited for at once
            for span in spans:
                is_before = span["endTime"] <= operation["startTime"]
                self.assertTrue(is_before or operation["endTime"] <= span["startTime"])
        self.assertLess(operations[2]["startTime"], spans[3]["endTime"])
        self.assertLessEqual(spans[3]["endTime"], operations[2]["endTime"])

    def test_a_named_span_keeps_passes_and_cuts_one_around_it(self):
        class Labelled(Layer):
            def forward(self, numbers):
                time.sleep(0.001)
                with telltale_ccl.compute("attention"):
                    numbers = super().forward(numbers)
                time.sleep(0.001)
                return numbers

        lines = spans_of(lambda: Labelled()(torch.ones(4, 16)))
        self.assertEqual([line["name"] for line in lines], ["forward", "attention", "forward"])

    def test_a_named_span_may_be_within_itself(self):
        def run():
            span = telltale_ccl.compute("own")
            with span, span:
                pass
            with telltale_ccl.compute("x" * 100):
                model()(torch.ones(4, 16))
            model()(torch.ones(4, 16))

        names = [line["name"] for line in spans_of(run)]
        self.assertEqual(names[-2:], ["x" * 64, "forward"])

    def test_the_waits_of_ddp_are_in_no_rank_s_spans(self):
        with Agent() as agent, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            env = dict(
                os.environ, TELLTALE_LOG_CCL=agent.place(), MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), WORLD_SIZE="2", OMP_NUM_THREADS="1",
                PYTHONPATH=os.path.join(os.path.dirname(HERE), "autoload"),
            )  # fmt: skip
            command = [sys.executable, os.path.join(HERE, "job.py"), "slow"]
            ranks = [subprocess.Popen(command, env=dict(env, RANK=str(rank))) for rank in range(2)]
            for rank in ranks:
                self.assertEqual(rank.wait(120), 0)
            lines = agent.lines
        took, median = {}, lambda rank: sorted(took[rank, step] for step in range(2, 10))[4]
        for line in lines:
            if line["opType"] == "compute":
                key = (line["global_rank"], line["step"])
                took[key] = took.get(key, 0) + line["endTime"] - line["startTime"]
        # Each computes its own share of the step's 100 ms, and waits for the other's.
        self.assertTrue(40_000 <= median(0) < 80_000, took)
        self.assertTrue(60_000 <= median(1) < 90_000, took)
        for rank in range(2):
            self._check_waits([line for line in lines if line.get("global_rank") == rank])

    def _check_waits(self, lines):
        spans = [line for line in lines if line["opType"] == "compute"]
        sums = [line for line in lines if line["opType"] == "allreduce" and line["finished"]]
        self.assertEqual([line["step"] for line in sums], list(range(10)))
        for line in sums:
            for span in spans:
                is_before = span["endTime"] <= line["startTime"]
                self.assertTrue(is_before or line["endTime"] <= span["startTime"], (line, span))


class Untouched(unittest.TestCase):
    def test_modules_and_optimizers_are_copied_and_stored_as_ever(self):
        one = model()
        optimizer = torch.optim.Adam(one.parameters())
        loss_of(one).backward()
        optimizer.step()
        copies = [copy.deepcopy((one, optimizer)), pickle.loads(pickle.dumps((one, optimizer)))]
        with tempfile.TemporaryFile() as file:
            torch.save((one, optimizer), file)
            file.seek(0)
            options = {} if torch.__version__.startswith("1.") else {"weights_only": False}
            copies.append(torch.load(file, **options))
        for other, its_own in copies:
            self.assertEqual(str(other), str(one))
            self.assertTrue(torch.equal(loss_of(other), loss_of(one)))
            self.assertEqual(len(its_own.state), len(optimizer.state))
            its_own.step()

    def test_what_is_stored_with_a_class_of_optimizers_can_be(self):
        cells = [cell.cell_contents for cell in type(EARLY).step.__closure__]
        kept = [one for one in cells if not callable(one)]
        self.assertEqual(len(pickle.loads(pickle.dumps(kept))), len(kept))

    def test_results_are_those_without(self):
        call = torch.nn.Module.__call__.__telltale_ccl__
        one = model()
        self.assertTrue(torch.equal(one(torch.ones(4, 16)), call(one, torch.ones(4, 16))))
        numbers = torch.ones(4, 16, requires_grad=True)
        (gradient,) = torch.autograd.grad(one(numbers).sum(), numbers)
        one(numbers).sum().backward()
        self.assertTrue(torch.equal(numbers.grad, gradient))

    def test_schedulers_and_closures_work(self):
        one = model()
        optimizer = torch.optim.SGD(one.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(optimizer.step(lambda: 7), 7)
            scheduler.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.25)

    def test_graphs_are_traced_scripted_and_exported(self):
        one, numbers = model(), torch.ones(4, 16)
        expected = one(numbers)
        for made in (torch.jit.trace(one, numbers), torch.jit.script(one), torch.fx.symbolic_trace(one)):
            self.assertTrue(torch.equal(made(numbers), expected))

    @unittest.skipIf(torch.__version__.startswith("1."), "torch.compile came with 2.0")
    def test_compiled_graphs_have_nothing_of_it(self):
        one, numbers = model(), torch.ones(4, 16)
        optimizer = torch.optim.SGD(one.parameters(), lr=0.0)

        def function(numbers):
            return one(numbers).sum() + one.inner(numbers).sum()

        def compiled(what):
            return torch.compile(what, backend="eager", fullgraph=True)

        whole, part = compiled(one), compiled(function)
        for _ in range(3):
            self.assertTrue(torch.equal(whole(numbers), one(numbers)))
            self.assertTrue(torch.equal(part(numbers), function(numbers)))
            with telltale_ccl.compute("within"):
                self.assertTrue(torch.equal(part(numbers), function(numbers)))
            part(numbers).backward()
            torch.compile(optimizer.step, backend="eager")()
            with telltale_ccl.compute("within"):
                torch.compile(optimizer.step, backend="eager")()
        lines = spans_of(lambda: [whole(numbers), part(numbers).backward()])
        self.assertEqual([line["name"] for line in lines], ["forward", "backward"])


if __name__ == "__main__":
    unittest.main()
