"""Puts itself around a model's passes and its optimizers' steps, whose times are posted as spans.

A forward pass is the outermost call of a module, a backward pass one of `torch.autograd.backward`
or `grad`, and an optimizer's step the outermost one of any optimizer. What these do and return
stays as it is, and `torch.compile` reads the originals. `TELLTALE_CCL_SPANS=0` leaves all of them
alone; with `all` steps are measured however short they are.
"""

import functools
import os
import threading

from . import _cuda, _record, _spans, _steps
from ._patches import WRAPPED
from ._spans import BACKWARD, FORWARD, OPTIMIZER, Span

VARIABLE = "TELLTALE_CCL_SPANS"


def start(rank):
    """Measures this thread's passes and steps from now on. `rank` is this process's in the job,
    where `RANK` is not set."""
    wanted = os.environ.get(VARIABLE)
    if wanted == "0":
        return
    import torch

    if not hasattr(torch.nn.Module.__call__, WRAPPED):
        _patch(torch)
    _spans.spans().start(rank, wanted == "all")


def _patch(torch):
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    has_devices = torch.backends.cuda.is_built()
    if has_devices:
        _patch_devices(torch)
    measured = functools.partial(_measured, is_compiling=is_compiling, has_devices=has_devices)
    module, autograd = torch.nn.Module, torch.autograd
    module.__call__ = measured(module.__call__, Span(FORWARD, True))
    # Gradients that are asked for end no step.
    autograd.backward = measured(autograd.backward, Span(BACKWARD, True, True))
    autograd.grad = measured(autograd.grad, Span(BACKWARD, True))
    in_graph = getattr(torch._C, "_current_graph_task_id", None)
    if in_graph is not None:
        _spans.in_graph_task = lambda: in_graph() != -1
    _patch_optimizers(torch.optim.Optimizer, lambda step: measured(step, Span(OPTIMIZER, False)))


def _patch_devices(torch):
    devices = _cuda.Devices(torch.cuda, torch.Tensor)
    devices.patch_captures()
    recorder = _record.recorder()
    recorder.devices = devices
    recorder.forgets.append(devices.forget)
    _spans.latest_clock = devices.latest


def _measured(original, span, is_compiling, has_devices):
    """A function around `original`, whose calls are this span. Around an optimizer's step it may be
    stored with the class, so all that it refers to can be."""
    spans, steps, get_ident = _spans.spans(), _steps.steps(), threading.get_ident
    name, keeps, is_optimizer, is_backward = span.name, span.keeps, not span.keeps, span.is_backward
    may_end_step = is_optimizer or is_backward

    # Each module of a model comes through here: one within another is done with at the first
    # question. A span that is within no other, as most are, finds all that it needs in this
    # function: behind a pass that has filled the caches, each line and object that is touched costs.
    def measured(*arguments, **named):
        if spans.keeps and not may_end_step:
            return original(*arguments, **named)
        if is_compiling is not None and is_compiling():
            return original(*arguments, **named)
        if spans.keeps:
            if is_optimizer or (spans.skips and steps.ends_with_backward):
                return _unmeasured(original, span, arguments, named)
            return original(*arguments, **named)
        step = spans.step
        if (
            spans.top is not None
            or step is None
            or has_devices
            or get_ident() != spans.owner
        ):
            return _elsewhere(original, span, arguments, named)
        spans.left = left = spans.left - 1
        began_ns = 0 if left > 0 else spans.timer()
        span.step = step
        span.may_wait = False
        span.start = start = spans.now()
        spans.top = span
        spans.keeps = keeps
        if began_ns:
            spans.timed(began_ns)
        try:
            outcome = original(*arguments, **named)
        finally:
            if began_ns:
                began_ns = spans.timer()
            if spans.top is span and span.start is start:
                spans.count += 1
                spans.append((name, start, spans.now(), step))
                spans.top = None
                spans.keeps = spans.at_rest
            else:
                spans.end(span)
            if began_ns:
                spans.timed(began_ns)
        if is_optimizer:
            steps.optimizer_ended(arguments[0])
        elif is_backward and steps.ends_with_backward:
            steps.backward_ended()
        return outcome

    functools.update_wrapper(measured, original)
    setattr(measured, WRAPPED, original)
    return measured


def _elsewhere(original, span, arguments, named):
    """The same for a span that is within another, on a device or another thread, or the first."""
    spans, steps, ident = _spans.spans(), _steps.steps(), threading.get_ident()
    top, is_optimizer = spans.top, not span.keeps
    if ident != spans.owner:
        if top is not None or span.name != BACKWARD:
            return original(*arguments, **named)
        spans.owner = ident  # the thread that trains
    if top is not None and is_optimizer:
        return original(*arguments, **named)  # a part of another optimizer's step
    if is_optimizer and steps.ends_with_backward:
        steps.optimizer_made()
    elif span.is_backward:
        steps.expect()
    devices = _record.recorder().devices
    spans.begin(span, None if devices is None else devices.clock(arguments, named))
    try:
        outcome = original(*arguments, **named)
    finally:
        spans.end(span)
    if is_optimizer:
        steps.optimizer_ended(arguments[0])
    elif span.is_backward and steps.ends_with_backward:
        steps.backward_ended()
    return outcome


def _unmeasured(original, span, arguments, named):
    """A call that may end a step and has no span: of an optimizer within a pass or a named span, or
    in a step that is not measured."""
    spans, steps = _spans.spans(), _steps.steps()
    top = spans.top
    if threading.get_ident() != spans.owner or (top is None and not spans.skips):
        return original(*arguments, **named)
    if top is None:
        spans.skips = False  # for what is within
    try:
        outcome = original(*arguments, **named)
    finally:
        if top is None:
            spans.skips = True
    if not span.keeps:
        steps.optimizer_ended(arguments[0], top is not None and top.is_backward)
    else:
        steps.backward_ended()
    return outcome


def _patch_optimizers(base, measured):
    """Replaces the step of each class of optimizers when PyTorch puts its own hooks around it, which
    is when there is a first instance."""

    def patch(which):
        if not hasattr(which.step, WRAPPED):
            which.step = measured(which.step)
        _steps.steps().optimizer_made()

    for name in ("_patch_step_function", "_hook_for_profile"):
        if hasattr(base, name):
            break
    else:
        return
    hook = getattr(base, name)

    @functools.wraps(hook)
    def hooked(self):
        hook(self)
        try:
            patch(type(self))
        except Exception:
            _record.recorder().error()

    setattr(base, name, hooked)
    for which in _subclasses(base):
        if hasattr(which.__dict__.get("step"), "hooked"):
            patch(which)


def _subclasses(base):
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)
