"""Futures: streams that end after one record."""

from collections.abc import Generator
from typing import Any, Generic, TypeVar

from thalweg._errors import GuestLost
from thalweg._native import AsyncStream, OwnedFuture, Stream

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_LOST = "the service dropped the future without a value"


class Future(Generic[_T_co]):
    """A value that arrives later, for sync code. You can take it once."""

    __slots__ = ("stream",)

    def __init__(self, stream: Stream[_T_co, Any]) -> None:
        self.stream = stream
        """The underlying stream."""

    @staticmethod
    def of(future: OwnedFuture[_T]) -> "Future[_T]":
        """The future inside a value; `future` is closed afterwards."""
        return Future(Stream.of(future))

    def result(self, timeout: float | None = None) -> _T_co:
        """Waits for the value. It raises `TimedOut` after `timeout` seconds; you may wait again.

        Raises `GuestLost` where the service dropped it without a value.
        """
        for batch in self.stream.batches(1, timeout):
            return batch.objects()[0]
        raise GuestLost(_LOST)

    def close(self) -> None:
        """Notifies the service that the value is not needed."""
        self.stream.close()


class AsyncFuture(Generic[_T_co]):
    """A value that arrives later, for asyncio. You can await it once."""

    __slots__ = ("stream",)

    def __init__(self, stream: AsyncStream[_T_co, Any]) -> None:
        self.stream = stream
        """The underlying stream."""

    @staticmethod
    def of(future: OwnedFuture[_T]) -> "AsyncFuture[_T]":
        """The future inside a value; `future` is closed afterwards."""
        return AsyncFuture(AsyncStream.of(future))

    async def _result(self) -> _T_co:
        async for value in self.stream:
            return value
        raise GuestLost(_LOST)

    def __await__(self) -> Generator[Any, Any, _T_co]:
        """The value. It raises `GuestLost` if the service dropped the future without one."""
        return self._result().__await__()

    def close(self) -> None:
        """Notifies the service that the value is not needed."""
        self.stream.close()
