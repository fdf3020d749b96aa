"""Streams in sync code: objects, batches, views, and every way to stop reading."""

import contextlib
import dataclasses
import gc
import os
import resource
import threading
import time
from pathlib import Path

import pytest
import thalweg
from options import FIXED
from thalweg_conformance import Conformance, FailureCode
from thalweg_search import Match, MatchView, Search


def memory() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_stream_yields_expected_objects(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        matches = sorted(
            search.matches(query), key=lambda match: (match.path, match.line)
        )
    assert [
        (os.path.relpath(match.path, tree), match.line, match.column)
        for match in matches
    ] == [
        (".hidden", 1, 3),
        ("a.txt", 1, 1),
        ("a.txt", 3, 5),
        ("bytes.txt", 1, 3),
        ("sub/b.txt", 1, 1),
        ("sub/b.txt", 2, 1),
        ("sub/b.txt", 3, 1),
    ]


def test_text_that_is_not_utf8_keeps_its_bytes(search: Search, tree: Path) -> None:
    only = dataclasses.replace(FIXED, globs=["bytes.txt"])
    with search.query("needle", str(tree), only) as query:
        (match,) = search.matches(query)
    assert match.text == "\ufffd needle \ufffd"
    assert match.text_bytes == b"\xff needle \xfe"
    assert match.path_bytes is None


def test_views_and_objects_are_equal(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        seen = 0
        for batch in search.matches(query).batches(max=3):
            assert 1 <= len(batch) <= 3
            objects = batch.objects()
            assert [view.copy() for view in batch] == objects
            for view, made in zip(batch, objects, strict=True):
                assert isinstance(view, MatchView)
                for name in Match.__slots__:
                    assert getattr(view, name) == getattr(made, name)
                assert repr(view).replace("MatchView", "Match") == repr(made)
            assert batch[0].copy() == batch[-len(batch)].copy() == objects[0]
            with pytest.raises(IndexError):
                batch[len(batch)]
            assert batch.first_seq == seen
            seen += len(batch)
    assert seen == 7


def test_elements_with_tails_equal_objects(service: Conformance) -> None:
    items = list(service.items(1000))
    assert [item.number for item in items] == list(range(1000))
    for batch in service.items(1000).batches():
        for item in batch:
            made = items[item.number]
            assert (item.name, item.tags, item.blob) == (
                made.name,
                made.tags,
                made.blob,
            )


def test_elements_can_be_numbers(service: Conformance) -> None:
    assert list(service.count(5, 1000)) == list(range(5, 1005))
    values = [value for batch in service.count(5, 1000).batches() for value in batch]
    assert values == list(range(5, 1005))


def test_view_of_released_batch_raises_closed(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        stream = search.matches(query)
        batches = stream.batches(max=1)
        first = next(batches)
        (view,) = first
        assert view.line > 0
        next(batches)
        for use in (lambda: view.line, lambda: view.text, view.copy, first.objects):
            with pytest.raises(thalweg.Closed):
                use()
        with pytest.raises(thalweg.Closed):
            first[0]
        assert first.released
        assert "released" in repr(view)


def test_every_batch_release_ends_its_views(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        for end in ("release", "with", "close"):
            stream = search.matches(query)
            batch = next(stream.batches(max=2))
            view = batch[0]
            assert view.text
            if end == "release":
                batch.release()
                batch.release()
            elif end == "with":
                with batch:
                    assert view.text
            else:
                stream.close()
            with pytest.raises(thalweg.Closed):
                _ = view.text


def test_view_keeps_its_batch_alive(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        view = next(search.matches(query).batches(max=1))[0]
        gc.collect()
        assert "needle" in view.text


def test_view_cannot_be_constructed_or_changed(search: Search, tree: Path) -> None:
    with pytest.raises(TypeError):
        MatchView()
    with search.query("needle", str(tree), FIXED) as query:
        view = next(search.matches(query).batches())[0]
        with pytest.raises(AttributeError):
            view.line = 3  # type: ignore[misc]
        with pytest.raises(TypeError):
            MatchView.line.__get__(object(), object)  # type: ignore[call-overload]


def test_close_of_half_read_stream_stops_writers(service: Conformance) -> None:
    stream = service.endless()
    assert next(stream) == 0
    assert service.running() == 1
    stream.close()
    stream.close()
    assert stream.closed
    assert list(stream) == []
    while service.running():
        time.sleep(0.01)


def test_dropped_stream_stops_writers(service: Conformance) -> None:
    for number in service.endless():
        if number == 1000:
            break
    while service.running():
        time.sleep(0.01)


def test_with_statement_closes_stream(search: Search, large_tree: Path) -> None:
    with search.query("needle", str(large_tree), FIXED) as query:
        with search.matches(query) as stream:
            next(stream)
        assert stream.closed


def test_slow_reader_keeps_memory_bounded(search: Search, large_tree: Path) -> None:
    with search.query("needle", str(large_tree), FIXED) as query:
        list(search.matches(query).batches())
        before = memory()
        count = 0
        for batch in search.matches(query).batches(max=64):
            count += len(batch)
            if count % 8192 < 64:
                time.sleep(0.002)
                assert memory() - before < 64 << 20
    assert count == 400_000


def test_stream_with_record_above_limit_raises_guest_lost(
    service: Conformance,
) -> None:
    rows: list[str] = []
    with pytest.raises(thalweg.GuestLost) as caught:
        rows.extend(service.rows_of(6, 70_000))
    assert "the record has 70,008 bytes, the limit is 65,536" in str(caught.value)
    stream = service.rows_of(6, 70_000)
    rows = [next(stream) for _ in range(6)]
    assert rows == ["x"] * 6
    with pytest.raises(thalweg.GuestLost):
        next(stream)


def test_stream_raises_exception_of_its_function_at_end(
    service: Conformance,
) -> None:
    stream = service.stops(3, "fail")
    assert [next(stream) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FailureCode) as caught:
        next(stream)
    assert caught.value.payload == 3
    assert list(stream) == []
    with service.stops(3, "fail") as stream_of_batches:
        batches = stream_of_batches.batches()
        assert next(batches).objects() == [0, 1, 2]
        with pytest.raises(FailureCode):
            next(batches)
    first = service.stops(0, "fail")
    further = first.tee()
    for reader in (first, further):
        with pytest.raises(FailureCode):
            next(reader)


def test_future_raises_exception_of_its_function(service: Conformance) -> None:
    with pytest.raises(FailureCode) as caught:
        service.fails_to_come(5).result()
    assert caught.value.payload == 5


def test_stream_is_complete_when_all_writers_have_finished(
    service: Conformance,
) -> None:
    assert list(service.stops(3, "finish")) == [0, 1, 2]
    for how in ("one", "drop"):
        with pytest.raises(thalweg.GuestLost, match="dropped without finish"):
            list(service.stops(3, how))


def test_panicked_stream_yields_earlier_elements(service: Conformance) -> None:
    seen: list[int] = []
    stream = None
    while stream is None:
        # If the panic precedes the reply, the call itself raises it.
        with contextlib.suppress(thalweg.GuestPanicked):
            stream = service.breaks(10)

    def read() -> None:
        for number in stream:
            seen.append(number)

    with pytest.raises(thalweg.GuestPanicked):
        read()
    assert seen == list(range(10))
    assert list(stream) == []
    assert service.echo_u8(1) == 1


def test_next_after_timeout_keeps_stream_open(service: Conformance) -> None:
    stream = service.count(0, 2)
    assert [stream.next(timeout=60), stream.next()] == [0, 1]
    with pytest.raises(StopIteration):
        stream.next(timeout=60)
    slow = service.later(1_000, "text").stream
    with pytest.raises(thalweg.TimedOut):
        slow.next(timeout=0.001)
    assert slow.next(timeout=60) == "text"


def test_batches_after_timeout_keep_stream_open(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        progress = query.progress()
        assert next(progress.batches())[0].files == 0
        batches = progress.batches(timeout=0.05)
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(thalweg.TimedOut):
                next(batches)
            assert time.monotonic() - begin > 0.04
        assert len(list(search.matches(query))) == 7
        assert next(progress.batches())[0].files > 0
        with pytest.raises(ValueError, match="max"):
            progress.batches(max=0)
        progress.close()


def test_call_deadline_ends_its_stream(service: Conformance) -> None:
    with pytest.raises(thalweg.TimedOut):
        for _ in service.endless(timeout=0.1):
            pass


def test_latest_stream_counts_replaced_records(service: Conformance) -> None:
    stream = service.latest(100_000)
    seen = list(stream)
    assert seen == sorted(seen)
    assert seen[-1] == 99_999
    assert len(seen) + stream.lost == 100_000


def test_gap_is_reported_at_start_of_batch(service: Conformance) -> None:
    following = 0
    lost = 0
    for batch in service.latest(100_000).batches():
        assert batch.first_seq - batch.lost_before == following
        assert (batch.gap_reason == 1) == (batch.lost_before > 0)
        assert batch[0] == batch.first_seq
        following = batch.first_seq + len(batch)
        lost += batch.lost_before
    assert following == 100_000


def test_close_from_another_thread_ends_reading(service: Conformance) -> None:
    stream = service.count(0, 10)
    list(stream)
    waiting = service.endless()
    batches = waiting.batches(max=1)
    next(batches)
    closer = threading.Timer(0.05, waiting.close)
    closer.start()
    for _ in batches:
        pass
    closer.join()
    assert waiting.closed


def test_second_concurrent_reader_is_refused(search: Search, tree: Path) -> None:
    with search.query("needle", str(tree), FIXED) as query:
        stream = query.progress()
        next(stream)

        def read() -> None:
            while True:
                # This thread may be the refused second reader.
                with contextlib.suppress(thalweg.BadArgument):
                    list(stream)
                    return

        thread = threading.Thread(target=read)
        thread.start()
        refused: thalweg.Error | None = None
        while not isinstance(refused, thalweg.BadArgument):
            try:
                next(stream.batches(timeout=0))
            except thalweg.Error as error:
                refused = error
        assert "somebody else" in str(refused)
        stream.close()
        thread.join(60)
        assert not thread.is_alive()


def test_client_close_cancels_its_streams(conformance_library: str) -> None:
    client = Conformance.open(conformance_library)
    stream = client.endless()
    next(stream)
    client.close()
    with pytest.raises(thalweg.Cancelled):
        for _ in stream:
            pass


def test_finalizer_closing_stream_during_decoding_is_safe(service: Conformance) -> None:
    """The garbage collector may run code that closes the stream during decoding."""
    for _ in range(20):
        stream = service.items(2000)
        batch = next(stream.batches())

        class Cycle:
            def __init__(self) -> None:
                self.me = self

            def __del__(self, stream: thalweg.Stream[object, object] = stream) -> None:
                stream.close()

        before = gc.get_threshold()
        gc.set_threshold(5)
        try:
            Cycle()
            made = batch.objects()
        except thalweg.Closed:
            made = []
        finally:
            gc.set_threshold(*before)
        assert all(item.name == f"item {item.number}" for item in made)
