"""How a host on asyncio answers: its functions' coroutines are tasks of the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from thalweg import _native

_TASKS: set[asyncio.Task[None]] = set()
"""The loop itself holds its tasks weakly."""


def begin(
    loop: asyncio.AbstractEventLoop,
    asked: _native.Asked,
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: tuple[Any, ...],
) -> None:
    """Has `function` answer what was `asked`."""
    task = loop.create_task(_answer(asked, function, arguments))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


async def _answer(
    asked: _native.Asked,
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: tuple[Any, ...],
) -> None:
    try:
        value = await function(*arguments)
    except Exception as error:
        asked.fail(error)
    except BaseException as error:
        asked.fail(error)
        raise
    else:
        asked.done(value)
