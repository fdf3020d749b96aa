"""Futures that a call returns."""

import asyncio

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance


def test_future_returns_ready_and_later_values(service: Conformance) -> None:
    assert service.later(0, "now").result() == "now"
    assert service.later(10, "then").result(timeout=60) == "then"


def test_future_result_after_timeout_can_be_retried(service: Conformance) -> None:
    future = service.later(50, "then")
    with pytest.raises(thalweg.TimedOut):
        future.result(timeout=0.001)
    assert future.result() == "then"
    future.close()


def test_future_without_value_raises_reason(service: Conformance) -> None:
    with pytest.raises(thalweg.GuestLost):
        service.never_comes(None).result()
    with pytest.raises(thalweg.GuestPanicked, match="no future"):
        service.never_comes("no future").result()


async def on_a_loop(library: str) -> None:
    async with AsyncConformance.open(library) as service:
        assert await (await service.later(0, "now")) == "now"
        both = await asyncio.gather(service.later(10, "a"), service.later(1, "b"))
        assert [await one for one in both] == ["a", "b"]
        with pytest.raises(thalweg.GuestLost):
            await (await service.never_comes(None))
        future = await service.later(60_000, "never")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, 0.01)
        future.close()


def test_futures_on_asyncio(conformance_library: str) -> None:
    asyncio.run(on_a_loop(conformance_library))
