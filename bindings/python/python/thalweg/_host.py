"""Answers host imports on asyncio: each call of a host function is a task of the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from thalweg import _native

_TASKS: set[asyncio.Task[None]] = set()
"""Strong references to the tasks, because the loop has only weak ones."""


def begin(
    loop: asyncio.AbstractEventLoop,
    call: _native.HostCall,
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: tuple[Any, ...],
) -> None:
    """Starts a task in which `function` answers `call`."""
    task = loop.create_task(_answer(call, function, arguments))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


async def _answer(
    call: _native.HostCall,
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: tuple[Any, ...],
) -> None:
    try:
        value = await function(*arguments)
    except Exception as error:
        call.fail(error)
    except BaseException as error:
        call.fail(error)
        raise
    else:
        call.done(value)
