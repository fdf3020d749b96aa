"""Resources inside values."""

import time

import pytest
import thalweg
from thalweg_conformance import (
    AsyncConformance,
    AsyncCounter,
    Conformance,
    Counter,
    MaybeCounter,
    MaybeCounterOne,
    MaybeCounterSeveral,
    Pair,
)


def living(service: Conformance, count: int) -> bool:
    """Whether the service reaches `count` live counters within about a second.

    The service learns of a dropped resource asynchronously.
    """
    for _ in range(1000):
        if service.counters() == count:
            return True
        time.sleep(0.001)
    return False


def test_resource_in_value_lives_until_dropped(
    service: Conformance,
) -> None:
    resources = service.give_counters(10, 3)
    assert service.counters() == 3
    counter = Counter.of(resources[1])
    assert resources[1].closed
    assert counter.value() == 11
    with pytest.raises(thalweg.Closed):
        Counter.of(resources[1])
    del resources
    assert living(service, 1)
    counter.close()
    assert living(service, 0)


def test_resource_sent_in_value_is_moved_to_service(service: Conformance) -> None:
    left, right = service.counter(1), service.counter(2)
    swapped = service.swap(Pair("n", left, right))
    assert left.closed
    assert right.closed
    assert swapped.right is not None
    assert Counter.of(swapped.left).value() == 2
    assert Counter.of(swapped.right).value() == 1
    with pytest.raises(thalweg.Closed):
        service.first_of(left)


def test_refused_call_keeps_resources_open(service: Conformance) -> None:
    counter = service.counter(1)
    with pytest.raises(TypeError, match=r"counters\[1\]: expected a resource"):
        service.total([counter, 7])  # type: ignore[list-item]
    assert counter.value() == 1
    assert service.total([counter]) == 1
    assert counter.closed


def test_error_carries_resources(service: Conformance) -> None:
    with pytest.raises(MaybeCounter) as one:
        service.swap(Pair("n", service.counter(5), None))
    assert isinstance(one.value, MaybeCounterOne)
    assert Counter.of(one.value.payload).value() == 5
    counters = [service.counter(n) for n in range(100)]
    with pytest.raises(MaybeCounterSeveral) as several:
        service.refuse(MaybeCounterSeveral(list(counters)))
    assert [Counter.of(c).value() for c in several.value.payload] == [*range(100)]


async def both(service: AsyncConformance) -> int:
    resources = await service.give_counters(1, 2)
    counter = AsyncCounter.of(resources[0])
    return await counter.value() + (await service.total([resources[1]]))


def test_resources_in_values_on_asyncio(conformance_library: str) -> None:
    import asyncio

    async def main() -> int:
        async with AsyncConformance.open(conformance_library) as service:
            return await both(service)

    assert asyncio.run(main()) == 3
