import enum
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, final, overload

from thalweg._results import Err, Ok, Some

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_E = TypeVar("_E")
_V = TypeVar("_V")
_V_co = TypeVar("_V_co", covariant=True)
_A_co = TypeVar("_A_co", covariant=True)
_R = TypeVar("_R", bound=Resource)
_F = TypeVar("_F", bound=enum.Flag)
_N = TypeVar("_N", bound=enum.Enum)

__version__: Final[str]
ABI: Final[int]
"""The ABI number of the table that this package supports."""

# What users meet.

class Client:
    """A client. Generated classes derive from it through `thalweg.Client`."""

    @classmethod
    def _open(
        cls, package: Package, path: str | os.PathLike[str], host: object = None, /
    ) -> Self: ...
    def close(self) -> None:
        """Closes the client.

        Its instance of the service is dropped; its calls and streams end as cancelled. Closing
        twice is fine.
        """
    @property
    def closed(self) -> bool:
        """Whether it was closed."""
    @property
    def library(self) -> os.PathLike[str]:
        """The path of the library, as it was opened first."""

@final
class together:
    """Submits the calls of one iteration of the running loop together.

    `with thalweg.together():` around what makes their tasks: `asyncio.gather`, `create_task`. They
    end as they do alone, each by itself.
    """

    def __enter__(self) -> None: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class HostCall:
    """A call of a host import, which is answered once."""

    def done(self, value: object, /) -> None:
        """Answers with the function's return value."""
    def fail(self, raised: BaseException, /) -> None:
        """Answers with the function's exception: its typed error, or a panic."""

@final
class Writer:
    """The writer of a stream or future that is a parameter."""

    def send(self, value: object, /) -> Awaitable[None] | None:
        """Sends an element. If there is no capacity, it returns an awaitable."""
    def end(self) -> None:
        """Finishes the stream and closes it."""
    def close(self) -> None:
        """Closes it. If it was not finished, the service reads `cancelled` at the end."""
    @property
    def closed(self) -> bool:
        """Whether it was closed, or the service has stopped reading."""
    def fail(self, raised: BaseException, /) -> None:
        """The values raised this exception: the call is cancelled and raises it."""

class Resource:
    """An object in the service. Generated classes derive from it.

    A value contains it as a `thalweg.OwnedResource`; `Counter.of(resource)` makes a `Counter`.
    """

    @classmethod
    def of(cls, resource: Resource) -> Self:
        """The resource inside a value, as an object of this class; `resource` is closed afterwards."""
    def close(self) -> None:
        """Closes the resource: the service drops it. A second call has no effect."""
    @property
    def closed(self) -> bool:
        """Whether it was closed or given away."""

class OwnedStream(Generic[_T_co, _V_co]):
    """A stream inside a value: `Stream.of(stream)` or `AsyncStream.of(stream)` reads it."""

    def close(self) -> None:
        """Closes the stream: its writers stop. A second call has no effect."""
    @property
    def closed(self) -> bool:
        """Whether it was closed, or taken for reading."""

@final
class OwnedFuture(OwnedStream[_T_co, _T_co]):
    """A future inside a value: `Future.of(future)` or `AsyncFuture.of(future)` waits for it."""

@final
class Stream(Generic[_T_co, _V_co]):
    """A stream for sync code; iterating gives objects. One reader at a time."""

    @staticmethod
    def of(stream: OwnedStream[_T, _V]) -> Stream[_T, _V]:
        """The stream inside a value; `stream` is closed afterwards."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def next(self, timeout: float | None = None) -> _T_co:
        """The next record.

        If none arrives within `timeout` seconds, it raises `TimedOut`, and you may try again.
        At the regular end it raises `StopIteration`.
        """
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The remaining records as an Arrow stream: `pyarrow.table(stream)`."""
    def batches(
        self, max: int = 256, timeout: float | None = None
    ) -> Iterator[Batch[_T_co, _V_co]]:
        """The batches of the stream, of at most `max` records each.

        If no batch arrives within `timeout` seconds, it raises `TimedOut`; the iteration may
        continue afterwards. The next batch releases the previous one.
        """
    def close(self) -> None:
        """Closes the stream: its writers stop, and views of an open batch raise."""
    @property
    def closed(self) -> bool:
        """Whether it was closed or has ended."""
    @property
    def lost(self) -> int:
        """Records lost so far under the stream's overflow policy."""
    @property
    def gap_reason(self) -> int:
        """Why the last of them were lost: `TW_GAP_*` of `thalweg.h`, or 0 if none was lost."""
    @property
    def control(self) -> bool:
        """Whether the last object was a record of the control lane."""
    def tee(self) -> Self:
        """Another reader, with its own position, losses and sequence numbers.

        It begins with what is written from now on.
        """
    def stats(self) -> StreamStats:
        """Statistics of all streams of this method since its client was opened."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class AsyncStream(Generic[_T_co, _V_co]):
    """A stream for asyncio; `async for` gives objects. One reader at a time."""

    @staticmethod
    def of(stream: OwnedStream[_T, _V]) -> AsyncStream[_T, _V]:
        """The stream inside a value; `stream` is closed afterwards."""
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[_T_co]: ...
    def batches(self, max: int = 256) -> AsyncIterator[Batch[_T_co, _V_co]]:
        """The batches of the stream, of at most `max` records each.

        The next batch releases the one before.
        """
    def close(self) -> None:
        """Closes the stream: its writers stop, and views of an open batch raise."""
    def aclose(self) -> Awaitable[None]:
        """`close()`, for `contextlib.aclosing`. It does not wait."""
    @property
    def closed(self) -> bool:
        """Whether it was closed or has ended."""
    @property
    def lost(self) -> int:
        """Records lost so far under the stream's overflow policy."""
    @property
    def gap_reason(self) -> int:
        """Why the last of them were lost: `TW_GAP_*` of `thalweg.h`, or 0 if none was lost."""
    @property
    def control(self) -> bool:
        """Whether the last object was a record of the control lane."""
    def tee(self) -> Self:
        """Another reader, with its own position, losses and sequence numbers.

        It begins with what is written from now on.
        """
    def stats(self) -> StreamStats:
        """Statistics of all streams of this method since its client was opened."""
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Awaitable[None]: ...

def counters() -> dict[str, dict[str, int]]:
    """The counters of each library that was opened, by its path.

    The names are those of `tw_counters` in `thalweg.h`: `actors`, `calls`, `streams`, ..
    """

def reload(
    address: str, to: str | None = None, *, drain_timeout: float | None = None
) -> None:
    """Replaces the library of a guest while it is used, by the one at the address `to`.

    By default, this is the library that is now at its own address. Clients stay open. After
    `drain_timeout` seconds, what still uses the old library ends as `Stale`; by default, it never
    does. If an error is raised, the guest stays as it is.
    """

@final
class LogQueue:
    """Receives the log records of all libraries, from a level of `logging` on."""

    def __new__(cls, level: int) -> Self: ...
    def take(self) -> list[tuple[int, str, str, float]] | None:
        """Waits for records: level, target, message, time. `None` once it is closed."""
    def close(self) -> None:
        """Stops receiving. Records that have arrived can still be taken."""

@final
class StreamStats:
    """Statistics of a client's streams of one method, in records.

    Once the writers are gone `published` is the sum of `delivered`, `lost`, `undelivered` and
    `occupancy`.
    """

    @property
    def streams(self) -> int:
        """The number of streams."""
    @property
    def published(self) -> int:
        """Records that writers have sent."""
    @property
    def delivered(self) -> int:
        """Records that readers received in a batch."""
    @property
    def undelivered(self) -> int:
        """Unread records of streams that were closed."""
    @property
    def occupancy(self) -> int:
        """Unread records of streams that are open."""
    @property
    def lost(self) -> list[int]:
        """Records lost, by reason: the index is the number of `gap_reason`."""
    @property
    def high_water(self) -> int:
        """The largest number of slots that one stream has used, in whole segments."""
    @property
    def control(self) -> int:
        """Records of the control lane that readers received in a batch."""
    @property
    def wakes(self) -> int:
        """The number of times that a writer woke a reader."""
    @property
    def parks(self) -> int:
        """The number of times that a reader asked to be woken."""
    @property
    def waits(self) -> int:
        """The number of times that a writer waited for capacity."""
    @property
    def faults(self) -> int:
        """Streams that ended with an error."""
    @property
    def age(self) -> list[int]:
        """Segments by age: entry i counts those first read after 2^i ns or more."""

@final
class Batch(Generic[_T_co, _V_co]):
    """Records in the library's memory, until they are released.

    Iterating gives views, whose fields are read when they are asked for; a view of a released
    batch raises `Closed`.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> _V_co: ...
    def __iter__(self) -> Iterator[_V_co]: ...
    def objects(self) -> list[_T_co]:
        """All records as objects, created at once. They outlive the batch."""
    def array(self) -> memoryview:
        """The records in place: `numpy.asarray(batch.array())` is an array of structures.

        Numbers, enums and flags are there by name, nested records and tuples too (`f0`, `f1`, ..), and
        an option as `some` and `value`; text, lists, variants and results are padding. The memory
        stays until the last array over it is gone, also past `release()`.
        """
    def column(self, name: str, /) -> memoryview:
        """One field of all records in place; `"place.line"` is `line` of the field `place`.

        Raises `TypeError` for what `array` has as padding, `KeyError` where there is no such field.
        """
    def __arrow_c_array__(
        self, requested_schema: object = None
    ) -> tuple[object, object]:
        """The records as Arrow: `pyarrow.record_batch(batch)`, `pyarrow.array(batch)`.

        A stream of numbers is handed out in place; columns of records are gathered, once. Enums,
        flags and chars are numbers. Raises `TypeError` for variants, results and options of options.
        """
    def release(self) -> None:
        """Returns the memory. A second call has no effect."""
    @property
    def released(self) -> bool:
        """Whether it was released."""
    @property
    def first_seq(self) -> int:
        """The number of the first record, counted from 0 at the start of the stream."""
    @property
    def lost_before(self) -> int:
        """Records lost directly before the first record."""
    @property
    def gap_reason(self) -> int:
        """Why they were lost: `TW_GAP_*` of `thalweg.h`, or 0 if none was lost."""
    @property
    def control(self) -> bool:
        """Whether it is of the control lane, whose records are never dropped."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

class View(Generic[_T_co]):
    """A record read in place. Generated classes derive from it."""

    __slots__ = ()

    def copy(self) -> _T_co:
        """The record as an object that outlives the batch."""

# What generated code uses: `thalweg.layout`.

@final
class Kind(Generic[_T_co]):
    """The layout of a type in messages."""

BOOL: Final[Kind[bool]]
U8: Final[Kind[int]]
U16: Final[Kind[int]]
U32: Final[Kind[int]]
U64: Final[Kind[int]]
S8: Final[Kind[int]]
S16: Final[Kind[int]]
S32: Final[Kind[int]]
S64: Final[Kind[int]]
F32: Final[Kind[float]]
F64: Final[Kind[float]]
CHAR: Final[Kind[str]]
STRING: Final[Kind[str]]
BYTES: Final[Kind[bytes]]
BORROW: Final[Kind[Resource]]
OWN: Final[Kind[Resource]]
NOTHING: Final[Kind[None]]

def array_of(element: Kind[_T], count: int, /) -> Kind[list[_T]]: ...
def bytes_of(count: int, /) -> Kind[bytes]: ...
def list_of(element: Kind[_T], /) -> Kind[list[_T]]: ...
def option(
    payload: Kind[_T], size: int, align: int, offset: int
) -> Kind[_T | None]: ...
def nested_option(
    payload: Kind[_T], size: int, align: int, offset: int
) -> Kind[Some[_T] | None]: ...
@overload
def result(
    ok: Kind[_T], error: Kind[_E], size: int, align: int, offset: int
) -> Kind[Ok[_T] | Err[_E]]: ...
@overload
def result(
    ok: Kind[_T], error: None, size: int, align: int, offset: int
) -> Kind[Ok[_T] | Err[None]]: ...
@overload
def result(
    ok: None, error: Kind[_E], size: int, align: int, offset: int
) -> Kind[Ok[None] | Err[_E]]: ...
@overload
def result(
    ok: None, error: None, size: int, align: int, offset: int
) -> Kind[Ok[None] | Err[None]]: ...
def tuple_of(size: int, align: int, *items: tuple[int, Kind[Any]]) -> Kind[Any]: ...
def record(
    cls: type[_T], size: int, align: int, *fields: tuple[str, int, Kind[Any]]
) -> Kind[_T]: ...
def variant(
    size: int,
    align: int,
    tag_size: int,
    offset: int,
    *cases: tuple[type[Any], Kind[Any] | None],
) -> Kind[Any]: ...
def enumeration(cls: type[_N], size: int, /) -> Kind[_N]: ...
def flags(cls: type[_F], size: int, /) -> Kind[_F]: ...
def stream_of(element: Kind[_T], hash: int, /) -> Kind[Any]: ...
def future_of(element: Kind[_T], hash: int, /) -> Kind[Any]: ...

@final
class Field(Generic[_T_co]):
    """A field of a view."""

    @overload
    def __get__(self, view: None, cls: type[Any], /) -> Self: ...
    @overload
    def __get__(self, view: View[Any], cls: type[Any], /) -> _T_co: ...

def field(offset: int, kind: Kind[_T]) -> Field[_T]: ...

_Params: TypeAlias = tuple[int, Sequence[tuple[str, int, Kind[Any]]]]
_Texts: TypeAlias = tuple[str, str, str, str]

@final
class Package:
    """A package of WIT and its methods, in the order of their numbers."""

    def __init__(
        self, name: str, version: str, layout: int, imports: int = 0
    ) -> None: ...
    def asks(
        self,
        name: str,
        method: str,
        texts: _Texts,
        params: _Params,
        ok: Kind[Any] | None,
        error: Kind[Any] | None = None,
    ) -> None: ...
    @overload
    def method(
        self,
        name: str,
        texts: _Texts,
        params: _Params,
        ok: Kind[_T],
        error: Kind[Any] | None = None,
        error_class: Callable[..., BaseException] | None = None,
    ) -> Method[_T, _T]: ...
    @overload
    def method(
        self,
        name: str,
        texts: _Texts,
        params: _Params,
        ok: None,
        error: Kind[Any] | None = None,
        error_class: Callable[..., BaseException] | None = None,
    ) -> Method[None, None]: ...
    @overload
    def stream_method(
        self,
        name: str,
        texts: _Texts,
        params: _Params,
        element: Kind[_T],
        view: type[_V],
        error: Kind[Any] | None = None,
        error_class: Callable[..., BaseException] | None = None,
    ) -> Method[Stream[_T, _V], AsyncStream[_T, _V]]: ...
    @overload
    def stream_method(
        self,
        name: str,
        texts: _Texts,
        params: _Params,
        element: Kind[_T],
        view: None,
        error: Kind[Any] | None = None,
        error_class: Callable[..., BaseException] | None = None,
    ) -> Method[Stream[_T, _T], AsyncStream[_T, _T]]: ...
    def resource_method(
        self,
        name: str,
        texts: _Texts,
        params: _Params,
        error: Kind[Any] | None = None,
        error_class: Callable[..., BaseException] | None = None,
    ) -> Method[Resource, Resource]: ...

@final
class Method(Generic[_T_co, _A_co]):
    """A method; `timeout` is in seconds."""

    def message(self, *arguments: object) -> bytes:
        """The message that a call with `arguments` would send."""
    def to_cbor(self, of: Client | Resource, part: str, value: object, /) -> bytes:
        """`value` in CBOR, of the types of this method.

        `part` is `"params"` (`value` is a tuple of the arguments), `"result"`, `"error"` or
        `"element"`; `of` is any client of the package.
        """
    def from_cbor(self, of: Client | Resource, part: str, data: bytes, /) -> Any:
        """Decodes `data` from CBOR. It raises `BadArgument` if it is not a valid value."""
    def call(
        self,
        of: Client | Resource,
        timeout: float | None,
        /,
        *arguments: object,
        on_notice: Callable[[float], object] | None = None,
    ) -> _T_co: ...
    def start(
        self,
        of: Client | Resource,
        timeout: float | None,
        /,
        *arguments: object,
        on_notice: Callable[[float], object] | None = None,
    ) -> Awaitable[_A_co]: ...
    def make(
        self,
        cls: type[_R],
        of: Client | Resource,
        timeout: float | None,
        /,
        *arguments: object,
        on_notice: Callable[[float], object] | None = None,
    ) -> _R: ...
    def start_make(
        self,
        cls: type[_R],
        of: Client | Resource,
        timeout: float | None,
        /,
        *arguments: object,
        on_notice: Callable[[float], object] | None = None,
    ) -> Awaitable[_R]: ...
