"""Sends streams and futures that are parameters, on asyncio."""

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Iterable
from typing import Any

from thalweg import _native
from thalweg._results import NoValue

_FAIR = 256
"""The number of elements that are sent before other tasks of the loop run."""


def begin(
    loop: asyncio.AbstractEventLoop,
    writer: _native.Writer,
    values: AsyncIterable[Any] | Iterable[Any] | Awaitable[Any],
) -> asyncio.Task[None]:
    """Starts a task that sends `values`."""
    task = loop.create_task(_send(writer, values))
    if inspect.iscoroutine(values):
        # A task that is cancelled before it starts has not awaited it.
        task.add_done_callback(lambda _: values.close())
    return task


async def _send(
    writer: _native.Writer,
    values: AsyncIterable[Any] | Iterable[Any] | Awaitable[Any],
) -> None:
    try:
        if isinstance(values, AsyncIterable):
            await _each(writer, values)
        elif isinstance(values, Iterable):
            await _all(writer, values)
        else:
            value = await values
            if not isinstance(value, NoValue):
                writer.send(value)
    except Exception as error:
        writer.fail(error)
    finally:
        # A writer that was not finished closes without an end.
        writer.close()


async def _each(writer: _native.Writer, values: AsyncIterable[Any]) -> None:
    iterator, sent = aiter(values), 0
    try:
        async for value in iterator:
            sent += 1
            if not await _one(writer, value, sent):
                return
        writer.end()
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


async def _all(writer: _native.Writer, values: Iterable[Any]) -> None:
    for sent, value in enumerate(values, 1):
        if not await _one(writer, value, sent):
            return
    writer.end()


async def _one(writer: _native.Writer, value: Any, sent: int) -> bool:
    """Sends an element. Returns whether the service continues to read."""
    room = writer.send(value)
    if room is not None:
        await room
    elif sent % _FAIR == 0:
        await asyncio.sleep(0)
    return not writer.closed
