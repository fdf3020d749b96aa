"""Two hand-offs through eventfds, with nothing around them: what a call over two threads is held against.

The thread that answers is C's (hosts/c/bare.c), so that nobody waits for the interpreter but the caller.
"""

import asyncio
import ctypes
import os


class Bare:
    """The thread, and the two descriptors."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        request, reply = ctypes.c_int(), ctypes.c_int()
        self._library.bare_start(ctypes.byref(request), ctypes.byref(reply))
        self.request = request.value
        self.reply = reply.value

    def call(self) -> None:
        """One request, one reply, blocking."""
        os.eventfd_write(self.request, 1)
        os.eventfd_read(self.reply)

    def stop(self) -> None:
        """Ends the thread."""
        self._library.bare_stop()


class AsyncBare:
    """The same with a reply that the running loop watches and that resolves a future."""

    def __init__(self, bare: Bare) -> None:
        self._bare = bare
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._loop.add_reader(bare.reply, self._replied)

    def _replied(self) -> None:
        os.eventfd_read(self._bare.reply)
        if self._waiting is not None:
            self._waiting.set_result(None)

    async def call(self) -> None:
        """One request, one reply."""
        self._waiting = self._loop.create_future()
        os.eventfd_write(self._bare.request, 1)
        await self._waiting

    def stop(self) -> None:
        """Watches no more."""
        self._loop.remove_reader(self._bare.reply)
