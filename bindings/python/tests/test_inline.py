"""Inline functions, which run on the calling thread: sync code and asyncio."""

import asyncio

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, FailureCode


def test_inline_call_returns_value_error_or_panic(service: Conformance) -> None:
    assert service.twice(21) == 42
    with pytest.raises(FailureCode) as raised:
        service.fail_here(FailureCode(9))
    assert raised.value == FailureCode(9)
    counter = service.counter(5)
    with pytest.raises(thalweg.GuestPanicked, match="not today"):
        service.panic_here("not today")
    assert counter.value() == 5, "the instance lives on"


def test_inline_call_past_deadline_does_not_start(service: Conformance) -> None:
    with pytest.raises(thalweg.TimedOut):
        service.panic_here("begun", timeout=0)


def test_inline_call_refuses_bad_argument_and_closed_client(
    service: Conformance,
) -> None:
    with pytest.raises(OverflowError):
        service.twice(-1)
    service.close()
    with pytest.raises(thalweg.Closed):
        service.twice(1)


def test_inline_call_on_asyncio_completes_without_yielding(
    conformance_library: str,
) -> None:
    async def main() -> None:
        service = AsyncConformance.open(conformance_library)
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1

        asyncio.get_running_loop().call_soon(turn)
        assert await service.twice(21) == 42
        with pytest.raises(FailureCode):
            await service.fail_here(FailureCode(9))
        with pytest.raises(thalweg.GuestPanicked):
            await service.panic_here("not today")
        assert turns == 0, "the event loop did not run in between"
        service.close()

    asyncio.run(main())
