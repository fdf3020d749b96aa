"""The base classes of clients and resources in generated packages."""

from types import TracebackType
from typing import Self

from thalweg import _native


class Client(_native.Client):
    """A client for sync code. It has its own instance of the service.

    It closes itself when it is dropped; `with` closes it for sure.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_native.Client):
    """A client for asyncio. `close` does not wait, so it needs no `await`."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Resource(_native.Resource):
    """An object in the service, for sync code. It keeps its client open."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncResource(_native.Resource):
    """An object in the service, for asyncio. It keeps its client open."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
