"""The gradients that `DistributedDataParallel` adds up in C++, where no Python function is called.

What is told is one all-reduce for each backward pass: it begins when this rank's own gradients are
computed and ends when the sums are there. So a rank that is late waits shortly and the others long.
Nothing is put in the way of the gradients themselves: the engine calls us at the end of the pass,
once before and once behind DistributedDataParallel's own last step.
"""

import functools

from . import _patches, _record
from ._record import BEGIN, END, now_us

MOST_DEPTH = 4


def patch():
    """Replaces `DistributedDataParallel.forward`, once."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    forward = DistributedDataParallel.forward
    if hasattr(forward, _patches.WRAPPED):
        return
    recorder = _record.recorder()

    @functools.wraps(forward)
    def observed(self, *arguments, **named):
        outputs = forward(self, *arguments, **named)
        if recorder.is_working and torch.is_grad_enabled():
            began_ns = recorder.timer()
            try:
                _watch(torch, recorder, self, outputs)
            except Exception:
                recorder.error()
            recorder.timed(began_ns)
        return outputs

    setattr(observed, _patches.WRAPPED, forward)
    DistributedDataParallel.forward = observed


def _watch(torch, recorder, module, outputs):
    """Has the end of the backward pass of these outputs told."""
    if not getattr(module, "require_backward_grad_sync", True):
        return
    group = _patches._group(module.process_group)
    tensors = [tensor for tensor in _tensors(torch, outputs, 0) if tensor.requires_grad]
    if group is None or not tensors:
        return
    size_bytes = getattr(module, "_telltale_bytes", None)
    if size_bytes is None:
        size_bytes = sum(_patches._size(p) for p in module.parameters() if p.requires_grad)
        module._telltale_bytes = size_bytes
    passed = _Pass(torch, recorder, group, size_bytes)
    for tensor in tensors:
        tensor.register_hook(passed.began)


def _tensors(torch, outputs, depth):
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif depth < MOST_DEPTH:
        if isinstance(outputs, dict):
            outputs = outputs.values()
        elif not isinstance(outputs, (list, tuple)):
            outputs = getattr(outputs, "__dict__", {}).values()
        for output in outputs:
            for tensor in _tensors(torch, output, depth + 1):
                yield tensor


class _Pass:
    """One backward pass."""

    def __init__(self, torch, recorder, group, size_bytes):
        self._queue = torch.autograd.Variable._execution_engine.queue_callback
        self._recorder = recorder
        self._group = group
        self._size_bytes = size_bytes
        self._start_us = None
        self._is_queued = False

    def began(self, _gradient):
        """The pass has come to an output: the first callback of its end is ours."""
        if self._is_queued:
            return
        self._is_queued = True
        self._timed(self._queue, self._computed)

    def _computed(self):
        """All gradients of this rank are there; the sums are on their way."""
        self._start_us = now_us()
        self._timed(self._tell, BEGIN, 0)
        # Behind the step that waits for the sums, which is queued by now.
        self._timed(self._queue, self._added)

    def _added(self):
        self._timed(self._tell, END, now_us())

    def _timed(self, function, *arguments):
        began_ns = self._recorder.timer()
        try:
            function(*arguments)
        except Exception:
            self._recorder.error()
        self._recorder.timed(began_ns)

    def _tell(self, kind, end_us):
        self._recorder.tell(
            kind, self._group, "allreduce", self._start_us, end_us, None, self._size_bytes
        )
