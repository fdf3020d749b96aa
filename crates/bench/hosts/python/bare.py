"""Two hand-offs between two threads, with nothing around them: what a call is held against.

The lab's library has it (crates/bench/service/src/bare.rs), so that every language uses the same one.
"""

import asyncio
import ctypes
import os


class Bare:
    """The thread that answers."""

    def __init__(self, library: str) -> None:
        # PyDLL keeps the interpreter's lock, which the thread that answers does not need.
        functions = ctypes.PyDLL(library)
        functions.lab_bare_open.restype = ctypes.c_void_p
        state = ctypes.c_void_p(functions.lab_bare_open())
        self._functions, self._state = functions, state
        self.event: int = functions.lab_bare_fd(state)

    def call(self) -> None:
        """One request, one reply, blocking."""
        self._functions.lab_bare_call(self._state)

    def post(self) -> None:
        """One request, whose reply makes the event readable."""
        self._functions.lab_bare_post(self._state)

    def stop(self) -> None:
        """Ends the thread."""
        self._functions.lab_bare_close(self._state)


class AsyncBare:
    """The same with a reply that the running loop watches and that resolves a future."""

    def __init__(self, bare: Bare) -> None:
        self._bare = bare
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._loop.add_reader(bare.event, self._replied)

    def _replied(self) -> None:
        os.eventfd_read(self._bare.event)
        if self._waiting is not None:
            self._waiting.set_result(None)

    async def call(self) -> None:
        """One request, one reply."""
        self._waiting = self._loop.create_future()
        self._bare.post()
        await self._waiting

    def stop(self) -> None:
        """Watches no more."""
        self._loop.remove_reader(self._bare.event)
