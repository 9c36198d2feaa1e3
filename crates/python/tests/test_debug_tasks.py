"""Tasks of asyncio that wait for debug events, and what becomes of them when the stream is closed."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from telltale import debug

_ROUNDS = 150


@pytest.fixture
def stream() -> Iterator[debug.Stream]:
    debug.register_cores(2)
    with debug.connect(0) as stream:
        yield stream


async def _prefixes(stream: debug.Stream, found: list[str]) -> None:
    async for event in stream:
        found.append(event.prefix)


async def _until_waiting(*tasks: asyncio.Task[None]) -> None:
    """Lets the tasks run until none has anything left to do."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


def test_tasks_wait_without_a_thread(stream: debug.Stream) -> None:
    async def both() -> list[str]:
        found: list[str] = []

        async def read() -> None:
            async for event in stream:
                found.append(event.prefix)

        tasks = [asyncio.create_task(read()) for _ in range(2)]
        for number in range(20):
            await asyncio.sleep(0.01 if number % 5 == 0 else 0)
            debug.publish(0, str(number), number)
        deadline = time.monotonic() + 30
        while len(found) < 20 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        # Both wait now; another thread closes it.
        threading.Thread(target=stream.close).start()
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        return found

    assert sorted(asyncio.run(both()), key=int) == [str(number) for number in range(20)]


def test_a_stream_that_follows_a_closed_one_has_its_events() -> None:
    debug.register_cores(1)

    async def followed() -> None:
        stream = debug.connect(0)
        reading = asyncio.create_task(_prefixes(stream, []))
        await _until_waiting(reading)
        # The next stream has the descriptor's number before the task that waited has run.
        stream.close()
        following = debug.connect(0)
        task = asyncio.create_task(anext(following))
        await asyncio.wait_for(reading, 5)
        assert debug.publish(0, "next", 1.0)
        assert (await asyncio.wait_for(task, 5)).prefix == "next"
        following.close()

    async def all_rounds() -> None:
        for _ in range(_ROUNDS):
            await followed()

    asyncio.run(all_rounds())


def test_a_stream_is_closed_wherever_its_task_is() -> None:
    debug.register_cores(1)

    async def closed(number: int) -> None:
        stream = debug.connect(0)
        begun = threading.Event()

        def close() -> None:
            begun.wait(10)
            for event in range(number):
                debug.publish(0, "x", event)
            stream.close()

        closing = threading.Thread(target=close)
        closing.start()
        reading = asyncio.create_task(_prefixes(stream, []))
        await asyncio.sleep(0)
        begun.set()
        await asyncio.wait_for(reading, 10)
        closing.join()

    async def all_rounds() -> None:
        for number in range(_ROUNDS):
            await closed(number % 10)

    before = sys.getswitchinterval()
    # Threads take turns often, so that the close is between any two steps.
    sys.setswitchinterval(1e-6)
    try:
        asyncio.run(all_rounds())
    finally:
        sys.setswitchinterval(before)


def test_a_task_that_is_cancelled_leaves_the_events_to_others(stream: debug.Stream) -> None:
    async def cancelled() -> list[str]:
        found: list[str] = []
        tasks = [asyncio.create_task(_prefixes(stream, found)) for _ in range(2)]
        await _until_waiting(*tasks)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1], timeout=10)
        assert tasks[0].cancelled() and debug.publish(0, "later", 1.0)
        deadline = time.monotonic() + 10
        while not found and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        stream.close()
        await asyncio.wait_for(tasks[1], 10)
        return found

    assert asyncio.run(cancelled()) == ["later"]


def test_loops_of_two_threads_share_a_stream(stream: debug.Stream) -> None:
    found: list[str] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            asyncio.run(_prefixes(stream, found))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        assert debug.publish(0, str(number), number)
        if number % 20 == 0:
            time.sleep(0.01)
    deadline = time.monotonic() + 30
    while len(found) < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    stream.close()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == [] and sorted(found, key=int) == [str(number) for number in range(200)]


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Complains of nothing."""


def test_a_loop_that_ended_does_not_keep_a_stream_from_closing(stream: debug.Stream) -> None:
    loop = asyncio.new_event_loop()
    # Which would complain of a task that never ends.
    loop.set_exception_handler(_ignore)
    reading = loop.create_task(_prefixes(stream, []))
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    assert not reading.done()
    loop.close()
    stream.close()
    assert stream.closed
