"""A value that comes later: a stream that ends after one record."""

from collections.abc import Generator
from typing import Any, Generic, TypeVar

from thalweg._errors import GuestLost
from thalweg._native import AsyncStream, HeldFuture, Stream

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_LOST = "the service dropped the future without a value"


class Future(Generic[_T_co]):
    """A value that comes later, for sync code. It comes once."""

    __slots__ = ("stream",)

    def __init__(self, stream: Stream[_T_co, Any]) -> None:
        self.stream = stream
        """The stream that it is."""

    @staticmethod
    def of(held: HeldFuture[_T]) -> "Future[_T]":
        """The future in a value; `held` is closed then."""
        return Future(Stream.of(held))

    def result(self, timeout: float | None = None) -> _T_co:
        """Waits for the value, `timeout` seconds at most: then `TimedOut`, and it may be waited for again.

        Raises `GuestLost` where the service dropped it without a value.
        """
        for batch in self.stream.batches(1, timeout):
            return batch.objects()[0]
        raise GuestLost(_LOST)

    def close(self) -> None:
        """Tells the service that nobody waits."""
        self.stream.close()


class AsyncFuture(Generic[_T_co]):
    """A value that comes later, for asyncio: await it, once."""

    __slots__ = ("stream",)

    def __init__(self, stream: AsyncStream[_T_co, Any]) -> None:
        self.stream = stream
        """The stream that it is."""

    @staticmethod
    def of(held: HeldFuture[_T]) -> "AsyncFuture[_T]":
        """The future in a value; `held` is closed then."""
        return AsyncFuture(AsyncStream.of(held))

    async def _result(self) -> _T_co:
        async for value in self.stream:
            return value
        raise GuestLost(_LOST)

    def __await__(self) -> Generator[Any, Any, _T_co]:
        """The value; raises `GuestLost` where the service dropped it without one."""
        return self._result().__await__()

    def close(self) -> None:
        """Tells the service that nobody waits."""
        self.stream.close()
