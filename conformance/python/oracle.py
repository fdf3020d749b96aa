"""The hosts of the clients, which `conformance/README.md` describes."""

from collections.abc import Sequence

import thalweg


class Book:
    """The host for sync code."""

    def look_up(self, key: int) -> str:
        if key == 101:
            raise RuntimeError("at 101, on purpose")
        if key % 2 == 1:
            raise thalweg.ServiceError(key)
        return f"number {key}"

    def tell(self, words: Sequence[str], at: int | None) -> int:
        return len("".join(words).encode()) + (at or 0)

    def nod(self) -> None:
        """Does nothing."""


class AsyncBook:
    """The host for asyncio."""

    async def look_up(self, key: int) -> str:
        return Book().look_up(key)

    async def tell(self, words: Sequence[str], at: int | None) -> int:
        return Book().tell(words, at)

    async def nod(self) -> None:
        """Does nothing."""
