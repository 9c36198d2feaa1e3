"""What the callbacks of trainers have in common: the cost of each step."""

from __future__ import annotations

from collections.abc import Callable

from . import torch as _torch
from ._track import Block, Track


class StepCosts:
    """The steps of a training: each is tracked, and its end is reported to the job's agent."""

    def __init__(self, report: Callable[[Block], object] | None) -> None:
        _torch.install()
        self._report = report
        self._track = Track("step", report)
        self._open = False
        self._peak: int | None = None

    def __reduce__(self) -> tuple[type[StepCosts], tuple[Callable[[Block], object] | None]]:
        """In a process that the trainer starts, as with ``ddp_spawn``, its own steps are counted."""
        return StepCosts, (self._report,)

    def begin(self) -> None:
        """A step begins; one that did not end is given up."""
        self.give_up()
        self._track.__enter__()
        self._open = True

    def end(self) -> Block | None:
        """A step ends; its cost, where it had begun."""
        if not self._open:
            return None
        self._open = False
        self._track.__exit__(None, None, None)
        _torch.step()
        block = self._track.last
        if block is not None and block.peak is not None:
            self._peak = max(block.peak, self._peak or 0)
        return block

    def give_up(self) -> None:
        """Leaves a step that was interrupted."""
        if self._open:
            self._open = False
            self._track.leave()

    @property
    def steps(self) -> int:
        """How many steps have ended."""
        return self._track.runs

    @property
    def seconds(self) -> float:
        """How long they took."""
        return self._track.total_seconds

    @property
    def peak(self) -> int | None:
        """The largest peak of a step in bytes; ``None`` where nothing is recorded."""
        return self._peak

    def __str__(self) -> str:
        if not self.steps:
            return "no step"
        mean = self.seconds / self.steps
        memory = "memory not recorded" if self.peak is None else f"peak {self.peak / 2**20:.1f} MiB"
        return f"{self.steps} steps of {mean * 1e3:.1f} ms, {memory}"


def metrics(block: Block) -> dict[str, float]:
    """What a step's cost is called in a trainer's own log."""
    values = {"telltale/step_seconds": block.seconds}
    if block.peak is not None and block.kept is not None:
        values["telltale/peak_bytes"] = float(block.peak)
        values["telltale/kept_bytes"] = float(block.kept)
    return values
