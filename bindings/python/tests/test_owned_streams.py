"""Streams and futures inside results."""

import asyncio
import time

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, FeedException


def running(service: Conformance, count: int) -> bool:
    """Whether the service reaches `count` running feeds within about ten seconds."""
    for _ in range(10_000):
        if service.running() == count:
            return True
        time.sleep(0.001)
    return False


def test_streams_in_list_of_records_are_independent(
    service: Conformance,
) -> None:
    feeds = service.feeds(4)
    assert [feed.name for feed in feeds] == ["0", "1", "2", "3"]
    for place in (3, 0, 2, 1):
        numbers = thalweg.Stream.of(feeds[place].numbers)
        assert [*numbers] == [*range(place)]
        assert feeds[place].numbers.closed
    last = feeds[3].last
    assert last is not None
    assert thalweg.Future.of(last).result() == "3"
    assert feeds[2].last is None


def test_owned_stream_taken_twice_raises_closed(service: Conformance) -> None:
    held = service.endless_feed().numbers
    with thalweg.Stream.of(held) as numbers:
        assert held.closed
        assert next(numbers) == 0
        with pytest.raises(thalweg.Closed):
            thalweg.Stream.of(held)
        # The stream has been taken, so closing the holder has no effect.
        held.close()
        assert next(numbers) == 1
        assert running(service, 1)
    assert running(service, 0)


def test_unused_held_streams_are_closed(service: Conformance) -> None:
    feeds = [service.endless_feed() for _ in range(3)]
    assert running(service, 3)
    feeds[0].numbers.close()
    assert running(service, 2)
    del feeds
    assert running(service, 0)


def test_tuple_and_error_carry_streams(service: Conformance) -> None:
    beats, point = service.mixed(2)
    assert [*thalweg.Stream.of(beats)] == [None, None]
    assert isinstance(point, thalweg.OwnedFuture)
    assert thalweg.Future.of(point).result(timeout=60).x == 2
    with pytest.raises(FeedException) as failed:
        service.mixed(0)
    assert failed.value.payload.name == "none"
    assert [*thalweg.Stream.of(failed.value.payload.numbers)] == [0, 1, 2]


def test_owned_stream_has_batches_and_statistics(service: Conformance) -> None:
    numbers = thalweg.Stream.of(service.endless_feed().numbers)
    batch = next(iter(numbers.batches(8)))
    assert batch.objects()[0] == 0
    assert numbers.stats().streams == 1
    numbers.close()


def test_owned_stream_batches_are_read_in_place(service: Conformance) -> None:
    numbers = thalweg.Stream.of(service.feeds(4)[3].numbers)
    arrays = [batch.array() for batch in numbers.batches(8)]
    # The arrays stay valid after the end of the stream.
    assert [array.readonly for array in arrays] == [True] * len(arrays)
    assert [number for array in arrays for number in array.tolist()] == [0, 1, 2]


async def on_a_loop(library: str) -> None:
    async with AsyncConformance.open(library) as service:
        feeds = await service.feeds(3)
        numbers = thalweg.AsyncStream.of(feeds[2].numbers)
        assert [number async for number in numbers] == [0, 1]
        last = feeds[1].last
        assert last is not None
        assert await thalweg.AsyncFuture.of(last) == "1"
        beats, point = await service.mixed(1)
        assert (await thalweg.AsyncFuture.of(point)).x == 1
        assert [beat async for beat in thalweg.AsyncStream.of(beats)] == [None]


def test_streams_in_results_on_asyncio(conformance_library: str) -> None:
    asyncio.run(on_a_loop(conformance_library))


def test_client_close_ends_held_streams(conformance_library: str) -> None:
    service = Conformance.open(conformance_library)
    taken = thalweg.Stream.of(service.endless_feed().numbers)
    held = service.endless_feed().numbers
    service.close()
    with pytest.raises((thalweg.Cancelled, thalweg.Stale, thalweg.Closed)):
        for _ in taken:
            pass
    with pytest.raises((thalweg.Cancelled, thalweg.Stale, thalweg.Closed)):
        for _ in thalweg.Stream.of(held):
            pass
