"""The gradients that `DistributedDataParallel` adds up in C++, where no Python function is called.

Reported is one all-reduce for each backward pass: it begins when this rank's own gradients are
computed and ends when the sums are there. So a rank that is late waits shortly and the others long.
Nothing is put in the way of the gradients themselves: the engine calls us at the end of the pass,
once before and once behind DistributedDataParallel's own last step.
"""

import functools
import time

from . import _patches, _record, _spans
from ._record import END_NS, TIMED_OF

MOST_DEPTH = 4
MOST_AGREEMENTS = 8
SUMS = "_telltale_sums"


def patch():
    """Replaces `DistributedDataParallel.forward`, once."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    forward = DistributedDataParallel.forward
    if hasattr(forward, _patches.WRAPPED):
        return
    recorder, is_grad_enabled = _record.recorder(), torch.is_grad_enabled
    left = TIMED_OF

    @functools.wraps(forward)
    def observed(self, *arguments, **named):
        nonlocal left
        outputs = forward(self, *arguments, **named)
        if self.require_backward_grad_sync and is_grad_enabled() and recorder.is_working:
            left -= 1
            began_ns = 0 if left else recorder.timer()
            try:
                sums = self.__dict__.get(SUMS) or _Sums(torch, recorder, self)
                sums.is_due = True
                if sums.began_by_outputs is not None:
                    for tensor in _tensors(torch.Tensor, outputs, 0):
                        if tensor.requires_grad:
                            tensor.register_hook(sums.began_by_outputs)
            except Exception:
                recorder.error()
            if began_ns:
                left = TIMED_OF
                recorder.timed(began_ns)
        return outputs

    setattr(observed, _patches.WRAPPED, forward)
    DistributedDataParallel.forward = observed
    # A forward pass waits for buffers that rank 0 sends.
    _patches.cut_waits(DistributedDataParallel, "_distributed_broadcast_coalesced")


def _cut_agreement(reducer):
    """Has spans leave out that a module's ranks agree on the order of its gradients, once, when one
    of the next forward passes begins."""
    original, left = getattr(reducer, "_rebuild_buckets", None), MOST_AGREEMENTS
    original = getattr(original, _patches.WRAPPED, original)
    if original is None:
        return

    def agreed(*arguments, **named):
        nonlocal left
        left -= 1
        if left <= 0:
            reducer._rebuild_buckets = original
        spans = _spans.spans()
        mark = None if spans.top is None else spans.mark()
        return _patches.waiting(original, arguments, named, mark)

    setattr(agreed, _patches.WRAPPED, original)
    reducer._rebuild_buckets = agreed


def _tensors(tensor_type, outputs, depth):
    """The tensors in what a module has computed."""
    if isinstance(outputs, tensor_type):
        return (outputs,)
    if depth >= MOST_DEPTH:
        return ()
    if isinstance(outputs, dict):
        outputs = outputs.values()
    elif not isinstance(outputs, (list, tuple)):
        outputs = getattr(outputs, "__dict__", {}).values()
    return [tensor for one in outputs for tensor in _tensors(tensor_type, one, depth + 1)]


class _Sums:
    """The reports of a module's backward passes."""

    __slots__ = ("is_due", "began_by_outputs")

    def __reduce__(self):
        # A module that is copied or stored has none of this.
        return type(None), ()

    def __init__(self, torch, recorder, module):
        # Whether the next pass adds up; a pass that no forward pass of the module belongs to does not.
        self.is_due = False
        self.began_by_outputs = None
        module.__dict__[SUMS] = self
        parameters = [one for one in module.parameters() if one.requires_grad]
        group = _patches._group(module.process_group)
        if group is not None and group.is_hooked:
            group = None
        if not parameters or (group is None and not _spans.spans().is_on()):
            return
        queue_callback = torch.autograd.Variable._execution_engine.queue_callback
        began = self._callbacks(recorder, group, _patches._size(parameters), queue_callback)
        _cut_agreement(torch.distributed.Reducer)
        # Each pass comes to each parameter, unless they may be left out. A hook that stays costs a
        # tenth of one for each pass.
        if module.find_unused_parameters or getattr(module, "static_graph", False):
            self.began_by_outputs = began
        else:
            parameters[-1].register_hook(began)

    def _callbacks(self, recorder, group, size_bytes, queue_callback):
        """What is called in a pass: once there is a gradient, when all of this rank's are there, and
        when their sums are. Without a group the pass's span is cut and nothing else reported."""
        spans = _spans.spans()
        timer, timed, left = recorder.timer, recorder.timed, TIMED_OF
        append, monotonic_ns, entry = recorder.queue.append, time.monotonic_ns, None

        def began(_gradient):
            if not self.is_due:
                return
            self.is_due = False
            began_ns = 0 if left > 1 else timer()
            try:
                # The first callback of the pass's end is ours.
                queue_callback(computed)
            except Exception:
                recorder.error()
            if began_ns:
                timed(began_ns)

        def computed():
            nonlocal entry, left
            left -= 1
            began_ns = 0 if left else timer()
            try:
                start_ns = monotonic_ns()
                if group is not None:
                    group.collectives = number = group.collectives + 1
                    entry = [
                        group, "allreduce", None, size_bytes, number, start_ns, 0, None, 0, False, 0,
                        spans.step, None,
                    ]  # fmt: skip
                    if recorder.devices is not None:
                        recorder.ready(entry, recorder.devices.latest())
                    append(entry)
                if spans.top is not None:
                    spans.pause(start_ns)
                # Behind the step that waits for the sums, which is queued by now.
                queue_callback(added)
            except Exception:
                recorder.error()
            if began_ns:
                left = TIMED_OF
                timed(began_ns)

        def added():
            try:
                end_ns = monotonic_ns()
                if group is not None:
                    recorder.met(group, "allreduce")
                    entry[END_NS] = end_ns
                if spans.top is not None:
                    spans.resume(end_ns)
            except Exception:
                recorder.error()

        # For a module that is stored as a whole.
        began.__torch_unserializable__ = True
        return began
