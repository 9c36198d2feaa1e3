"""Hugging Face's Trainer: a callback that says what each step costs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._steps import StepCosts, metrics
from ._track import Block
from .errors import MissingPackageError


def _base() -> Any:
    try:
        return importlib.import_module("transformers").TrainerCallback
    except ImportError as error:
        message = "transformers cannot be imported; `pip install transformers`"
        raise MissingPackageError(message, str(error)) from error


if TYPE_CHECKING:
    # Where it is not installed, checkers take it for a class of which they know nothing.
    from transformers import TrainerCallback as _Callback  # pyright: ignore
else:
    _Callback = _base()


class TelltaleCallback(_Callback):  # pyright: ignore[reportUntypedBaseClass]
    """Tracks each optimizer step: ``Trainer(callbacks=[TelltaleCallback()])``.

    The log of the trainer's state gets ``telltale/step_seconds``, and where memory is recorded ``telltale/peak_bytes``
    and ``telltale/kept_bytes``, those of the last step before each entry. W&B, TensorBoard and the like, which are
    callbacks too, get them after :meth:`put_first`. The job's agent, where there is one, sees collectives and steps.
    ``report`` is called with the :class:`telltale.Block` of each step, such as ``print``.
    """

    def __init__(self, report: Callable[[Block], object] | None = None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.costs = StepCosts(report)
        self._last: Block | None = None

    def put_first(self, trainer: Any) -> None:
        """Puts the callback before the trainer's others, and adds it if it is not among them.

        The trainer calls them in order, those of W&B and TensorBoard before those that it was given. Only callbacks
        that come later find the values in the log.
        """
        callbacks: list[Any] = trainer.callback_handler.callbacks
        callbacks[:] = [self, *(one for one in callbacks if one is not self)]

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.costs.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._last = self.costs.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if self._last is None:
            return
        values = metrics(self._last)
        if logs is not None:
            logs.update(values)
        if state.log_history:
            state.log_history[-1].update(values)
