"""The hosts of the scenarios' clients: `conformance/README.md` says what they answer."""

from collections.abc import Sequence

import thalweg


class Book:
    """For sync code."""

    def look_up(self, key: int) -> str:
        if key == 101:
            raise RuntimeError("at 101, on purpose")
        if key % 2 == 1:
            raise thalweg.ServiceError(key)
        return f"number {key}"

    def tell(self, words: Sequence[str], at: int | None) -> int:
        return len("".join(words).encode()) + (at or 0)

    def nod(self) -> None:
        """Nothing."""


class AsyncBook:
    """For asyncio."""

    async def look_up(self, key: int) -> str:
        return Book().look_up(key)

    async def tell(self, words: Sequence[str], at: int | None) -> int:
        return Book().tell(words, at)

    async def nod(self) -> None:
        """Nothing."""
