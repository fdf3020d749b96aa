"""A closed client, a refused call or a full queue does not affect later work."""

import asyncio

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, Failure


def test_thousand_failed_constructors_leak_nothing(service: Conformance) -> None:
    before = service.counters()
    for number in range(1, 2_000, 2):
        with pytest.raises(Failure):
            service.even(number)
    assert service.even(8).half() == 4
    assert service.counters() == before


def test_client_close_under_load_ends_each_call_once(
    conformance_library: str,
) -> None:
    async def flood() -> list[object]:
        client = AsyncConformance.open(conformance_library)
        calls = [
            asyncio.ensure_future(call)
            for _ in range(500)
            for call in (client.echo_u32(7), client.sleep(1), client.never())
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        client.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    for _ in range(3):
        ends = asyncio.run(flood())
        wrong = [
            end
            for end in ends
            if end not in (7, 1) and not isinstance(end, thalweg.Cancelled)
        ]
        assert not wrong
        # Every third call never returns, so only the close can end it.
        assert sum(isinstance(end, thalweg.Cancelled) for end in ends) >= 500
    with Conformance.open(conformance_library) as service:
        assert service.echo_u32(7) == 7


def test_stream_after_full_closed_stream_starts_empty(service: Conformance) -> None:
    for _ in range(20):
        with service.endless() as full:
            assert len(next(iter(full.batches()))) > 0
        with service.count(7, 3) as stream:
            first = None
            numbers = []
            for batch in stream.batches():
                first = first or (batch.first_seq, batch.lost_before)
                numbers += list(batch)
            assert (first, numbers) == ((0, 0), [7, 8, 9])


def test_overloaded_port_accepts_calls_again(conformance_library: str) -> None:
    async def overrun() -> None:
        async with AsyncConformance.open(conformance_library) as client:
            calls = [asyncio.ensure_future(client.never()) for _ in range(20_000)]
            await asyncio.sleep(0)
            refused = [call for call in calls if call.done()]
            assert refused
            for call in refused:
                with pytest.raises(thalweg.Overloaded) as raised:
                    call.result()
                assert raised.value.retryable
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert await client.echo_u32(7) == 7

    for _ in range(3):
        asyncio.run(overrun())
