"""Host imports implemented in Python, from sync code and on asyncio."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Sequence

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance

ERROR, PANICKED, CLOSED, WOULD_PARK = 1, 5, 8, 14


class Book:
    """A host for sync code.

    Even keys have a text and odd keys an error. 101 raises, 103 returns a value that
    is not text, 105 calls its client.
    """

    def __init__(self) -> None:
        self.client: Conformance | None = None
        self.threads = set[int]()
        self.nods = 0
        self.called_back: BaseException | None = None

    def look_up(self, key: int) -> str:
        self.threads.add(threading.get_ident())
        if key == 101:
            raise RuntimeError("on purpose")
        if key == 103:
            return 103  # type: ignore[return-value]
        if key == 105 and self.client is not None:
            try:
                self.client.echo_u8(1)
            except thalweg.Error as error:
                self.called_back = error
        if key % 2 == 1:
            raise thalweg.ServiceError(key)
        return f"number {key}"

    def tell(self, words: Sequence[str], at: int | None) -> int:
        return len("".join(words)) + (at or 0)

    def nod(self) -> None:
        self.nods += 1


class AsyncBook:
    """The same for asyncio; the call for key 200 waits for the call for key 202."""

    def __init__(self) -> None:
        self.met = asyncio.Event()

    async def look_up(self, key: int) -> str:
        await asyncio.sleep(0)
        if key == 101:
            raise RuntimeError("on purpose")
        if key % 2 == 1:
            raise thalweg.ServiceError(key)
        if key == 200:
            await self.met.wait()
        if key == 202:
            self.met.set()
        return f"number {key}"

    async def tell(self, words: Sequence[str], at: int | None) -> int:
        return len("".join(words)) + (at or 0)

    async def nod(self) -> None:
        await asyncio.sleep(0)


def code_of(raised: pytest.ExceptionInfo[thalweg.ServiceError]) -> int:
    code = raised.value.payload
    assert isinstance(code, int)
    return code


def test_stream_reader_answers_host_imports(conformance_library: str) -> None:
    book = Book()
    with Conformance.open(conformance_library, host=book) as client:
        wanted = [f"number {2 * key}" for key in range(300)]
        assert list(client.looked_up(300)) == wanted
        assert book.threads == {threading.get_ident()}
        stream = client.looked_up(300)
        got = [text for batch in stream.batches(7) for text in batch.objects()]
        assert got == wanted
        # A second reader on the same thread, with a call between two reads.
        further = client.looked_up(3)
        assert next(further) == "number 0"
        assert client.ask(2) == "number 2"
        assert list(further) == ["number 2", "number 4"]


def test_stream_wait_with_host_ends_by_timeout_or_close(
    conformance_library: str,
) -> None:
    with Conformance.open(conformance_library, host=Book()) as client:
        quiet = client.ticks()
        with pytest.raises(thalweg.TimedOut):
            next(quiet.batches(timeout=0.01))
        client.tick(2)
        batches = quiet.batches(timeout=0.01)
        assert next(batches).objects() == [0, 1]
        # The deadline of the earlier wait has no effect on this one.
        with pytest.raises(thalweg.TimedOut):
            next(batches)
        assert client.ask(2) == "number 2"
        closer = threading.Timer(0.05, quiet.close)
        closer.start()
        assert list(quiet) == []
        closer.join()
        with pytest.raises(thalweg.TimedOut):
            list(client.endless(timeout=0.05))
        broken = client.ticks()
        threading.Timer(0.05, client.close).start()
        with pytest.raises(thalweg.Cancelled):
            list(broken)


class Stop(BaseException):
    """Not an `Exception`: raised by a host import, it ends the wait."""


def test_base_exception_in_host_closes_stream(conformance_library: str) -> None:
    class Stopping(Book):
        stops = False

        def look_up(self, key: int) -> str:
            if self.stops:
                raise Stop
            return super().look_up(key)

    book = Stopping()
    with Conformance.open(conformance_library, host=book) as client:
        stream = client.looked_up(100_000)
        book.stops = True
        with pytest.raises(Stop):
            list(stream)
        assert stream.closed


def test_asyncio_stream_reader_answers_host_imports(conformance_library: str) -> None:
    async def run() -> None:
        async with AsyncConformance.open(
            conformance_library, host=AsyncBook()
        ) as client:
            stream = await client.looked_up(20)
            got = [text async for text in stream]
            assert got == [f"number {2 * key}" for key in range(20)]

    asyncio.run(run())


def test_host_import_runs_on_calling_thread(conformance_library: str) -> None:
    book = Book()
    with Conformance.open(conformance_library, host=book) as client:
        assert client.ask(2) == "number 2"
        assert client.ask_later(1_000_000) == "number 1000000"
        assert client.tell(["four", "", "fives"], 100) == 109
        assert client.tell([], None) == 0
        assert book.nods == 2
        with pytest.raises(thalweg.ServiceError) as raised:
            client.ask(7)
        assert code_of(raised) == ERROR
        assert book.threads == {threading.get_ident()}

        # Each thread answers the host imports of its own call.
        other = threading.Thread(target=lambda: client.ask(4))
        other.start()
        other.join()
        assert len(book.threads) == 2


@pytest.mark.parametrize("key", [101, 103])
def test_failing_host_import_panics_and_next_call_succeeds(
    conformance_library: str, key: int
) -> None:
    with Conformance.open(conformance_library, host=Book()) as client:
        with pytest.raises(thalweg.ServiceError) as raised:
            client.ask_later(key)
        assert code_of(raised) == PANICKED
        assert client.ask(2) == "number 2"


def test_host_import_calling_its_client_raises_would_park(
    conformance_library: str,
) -> None:
    book = Book()
    with Conformance.open(conformance_library, host=book) as client:
        book.client = client
        with pytest.raises(thalweg.ServiceError):
            client.ask(105)
        assert isinstance(book.called_back, thalweg.WouldPark)
        # Calling another client is allowed.
        with Conformance.open(conformance_library) as other:
            book.client = other
            book.called_back = None
            with pytest.raises(thalweg.ServiceError):
                client.ask(105)
            assert book.called_back is None


def test_host_import_without_host_is_closed(service: Conformance) -> None:
    with pytest.raises(thalweg.ServiceError) as raised:
        service.ask(2)
    assert code_of(raised) == CLOSED


def test_host_is_freed_with_its_client(conformance_library: str) -> None:
    class Closing(Book):
        pass

    book = Closing()
    seen = weakref.ref(book)
    client = Conformance.open(conformance_library, host=book)
    book.client = client
    assert client.ask(2) == "number 2"
    del book, client
    gc.collect()
    assert seen() is None, "a reference cycle of both is collected"


def test_host_for_service_without_imports_is_refused(search_library: str) -> None:
    from thalweg_search import _methods

    with pytest.raises(thalweg.BadArgument):
        thalweg.Client._open(_methods.PACKAGE, search_library, object())


def test_asyncio_host_imports_are_coroutines(conformance_library: str) -> None:
    async def main() -> None:
        client = AsyncConformance.open(conformance_library, host=AsyncBook())
        assert await client.ask(2) == "number 2"
        assert await client.tell(["four", "fives"], None) == 9
        with pytest.raises(thalweg.ServiceError) as raised:
            await client.ask_later(7)
        assert code_of(raised) == ERROR
        with pytest.raises(thalweg.ServiceError) as raised:
            await client.ask_later(101)
        assert code_of(raised) == PANICKED
        # The imports run concurrently: the first waits for the second.
        both = await asyncio.gather(client.ask_later(200), client.ask_later(202))
        assert list(both) == ["number 200", "number 202"]
        # A timed-out import does not block the next one.
        book = AsyncBook()
        slow = AsyncConformance.open(conformance_library, host=book)
        with pytest.raises(thalweg.TimedOut):
            await slow.ask_later(200, timeout=0.05)
        book.met.set()
        assert await slow.ask(4) == "number 4"
        slow.close()
        client.close()

    asyncio.run(main())
