"""Control lane, additional readers, statistics and final losses of a stream."""

import asyncio
import threading

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance

DROPPED_NEWEST, DROPPED_OLDEST, WRITER = 2, 3, 5


def test_control_record_comes_first_and_is_marked(service: Conformance) -> None:
    stream = service.ticks()
    assert service.tick(3) == 1
    assert service.mark(99) == 1
    service.end_ticks()
    seen = []
    for number in stream:
        seen.append((number, stream.control))
    assert seen == [(99, True), (0, False), (1, False), (2, False)]
    stream = service.ticks()
    service.tick(2)
    service.mark(7)
    service.mark(8)
    service.end_ticks()
    batches = [
        (batch.control, batch.first_seq, batch.objects()) for batch in stream.batches()
    ]
    assert batches == [(True, 0, [7]), (True, 1, [8]), (False, 0, [0, 1])]


def test_second_reader_has_its_own_position(service: Conformance) -> None:
    stream = service.ticks()
    service.tick(2)
    further = stream.tee()
    service.tick(3)
    service.end_ticks()
    assert list(stream) == [0, 1, 2, 3, 4]
    assert list(further) == [2, 3, 4]
    with pytest.raises(thalweg.Closed):
        stream.tee()


def test_reader_on_other_thread_survives_close_of_first(service: Conformance) -> None:
    stream = service.ticks()
    further = stream.tee()
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.extend(further))
    thread.start()
    stream.close()
    assert service.tick(1000) == 1
    service.end_ticks()
    thread.join(30)
    assert seen == list(range(1000))


def test_statistics_add_up_and_outlive_stream(service: Conformance) -> None:
    first = service.ticks()
    service.tick(10)
    service.mark(1)
    service.end_ticks()
    assert next(first) == 1
    assert next(first) == 0
    stats = first.stats()
    assert (stats.streams, stats.published, stats.control) == (1, 10, 1)
    assert stats.delivered + stats.occupancy == 10
    first.close()
    with pytest.raises(thalweg.Closed):
        first.stats()
    second = service.ticks()
    service.tick(4)
    service.end_ticks()
    assert len(list(second.batches())) >= 1
    last = service.ticks()
    stats = last.stats()
    assert (stats.streams, stats.published) == (3, 14)
    assert stats.published == stats.delivered + stats.undelivered
    assert stats.lost == [0] * 8
    assert len(stats.age) == 32
    assert "published=14" in repr(stats)


def test_losses_are_reported_at_end_of_stream(service: Conformance) -> None:
    newest = service.drops_newest(1000)
    seen = list(newest)
    assert seen == list(range(len(seen)))
    assert len(seen) + newest.lost == 1000
    assert newest.gap_reason == DROPPED_NEWEST
    oldest = service.drops_oldest(1000)
    seen = list(oldest)
    assert seen == list(range(1000 - len(seen), 1000))
    assert len(seen) + oldest.lost == 1000
    assert oldest.gap_reason == DROPPED_OLDEST
    refused = service.refuses(1000)
    seen = list(refused)
    assert seen == list(range(len(seen)))
    assert len(seen) + refused.lost == 1000
    assert refused.gap_reason == WRITER


def test_control_statistics_and_losses_on_asyncio(conformance_library: str) -> None:
    async def run() -> None:
        async with AsyncConformance.open(conformance_library) as client:
            stream = await client.ticks()
            further = stream.tee()
            await client.tick(3)
            await client.mark(99)
            await client.end_ticks()
            seen = [(number, stream.control) async for number in stream]
            assert seen == [(99, True), (0, False), (1, False), (2, False)]
            batches = [
                (batch.control, batch.objects()) async for batch in further.batches()
            ]
            assert batches == [(True, [99]), (False, [0, 1, 2])]
            last = await client.ticks()
            stats = last.stats()
            assert (stats.streams, stats.published, stats.control) == (2, 3, 1)
            lossy = await client.drops_newest(1000)
            count = len([number async for number in lossy])
            assert count + lossy.lost == 1000
            assert lossy.gap_reason == DROPPED_NEWEST

    asyncio.run(run())
