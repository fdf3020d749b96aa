"""Inline functions: on the caller's thread, from sync code and on asyncio."""

import asyncio

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, FailureCode


def test_its_value_its_error_and_its_panic(service: Conformance) -> None:
    assert service.twice(21) == 42
    with pytest.raises(FailureCode) as raised:
        service.fail_here(FailureCode(9))
    assert raised.value == FailureCode(9)
    counter = service.counter(5)
    with pytest.raises(thalweg.GuestPanicked, match="not today"):
        service.panic_here("not today")
    assert counter.value() == 5, "the instance lives on"


def test_past_its_deadline_it_is_not_begun(service: Conformance) -> None:
    with pytest.raises(thalweg.TimedOut):
        service.panic_here("begun", timeout=0)


def test_arguments_that_do_not_fit_and_a_closed_client(service: Conformance) -> None:
    with pytest.raises(OverflowError):
        service.twice(-1)
    service.close()
    with pytest.raises(thalweg.Closed):
        service.twice(1)


def test_on_asyncio_it_has_its_value_at_once(conformance_library: str) -> None:
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
        assert turns == 0, "the loop had no turn meanwhile"
        service.close()

    asyncio.run(main())
