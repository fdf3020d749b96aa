"""Sync calls: values, errors, deadlines, panics, threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import thalweg
from thalweg_conformance import Conformance, Counter, Failure, FailureAt, FailureCode
from thalweg_conformance.types import FailureUnknown, Point
from thalweg_search import Search, SearchError, SearchErrorDirectory, SearchErrorPattern


def test_call_returns_value(search: Search, tree: Path) -> None:
    assert search.count("needle", str(tree)) == 7


def test_typed_error_is_raised_as_exception(search: Search, tree: Path) -> None:
    with pytest.raises(SearchErrorPattern) as caught:
        search.count("(", str(tree))
    assert isinstance(caught.value, SearchError)
    assert isinstance(caught.value, thalweg.ServiceError)
    assert caught.value.code == 1
    assert not caught.value.retryable
    assert "(" in caught.value.payload
    with pytest.raises(SearchErrorDirectory):
        search.count("a", str(tree / "missing"))


def test_each_error_case_is_raised(service: Conformance) -> None:
    for error in (FailureUnknown(), FailureCode(7), FailureAt(("here", Point(1, -2)))):
        with pytest.raises(Failure) as caught:
            service.fail(error)
        assert caught.value == error
        with pytest.raises(Failure) as caught:
            service.fail_later(error)
        assert caught.value == error
    assert service.fail(None) == 7


def test_error_without_payload_has_payload_none(service: Conformance) -> None:
    service.fail_bare(False)
    with pytest.raises(thalweg.ServiceError) as caught:
        service.fail_bare(True)
    assert caught.value.payload is None


def test_call_past_its_timeout_raises_timed_out(service: Conformance) -> None:
    begin = time.monotonic()
    with pytest.raises(thalweg.TimedOut) as caught:
        service.never(timeout=0.05)
    assert time.monotonic() - begin > 0.04
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.code == 3


def test_timeout_of_wrong_type_raises_type_error(service: Conformance) -> None:
    wrongs: list[object] = ["x", "1", [], b"2"]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="timeout"):
            service.never(timeout=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout"):
        service.later(1, "x").result(timeout="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout"):
        service.endless().batches(timeout="x")  # type: ignore[arg-type]


def test_error_without_message_shows_its_class() -> None:
    assert str(thalweg.TimedOut()) == "timed out"
    assert str(thalweg.ServiceError()) == "service error"
    assert str(thalweg.Cancelled("by hand")) == "by hand"
    assert str(thalweg.ServiceError(0)) == "0"


def test_zero_or_negative_timeout_raises_timeout_error(service: Conformance) -> None:
    for timeout in (0, -1.0):
        with pytest.raises(TimeoutError):
            service.never(timeout=timeout)
    with pytest.raises(ValueError, match="not a number"):
        service.never(timeout=float("nan"))
    assert service.sleep(1, timeout=float("inf")) == 1


def test_panic_fails_only_its_own_call(service: Conformance) -> None:
    for panic in (service.panic, service.panic_later):
        with pytest.raises(thalweg.GuestPanicked, match="out of cheese") as caught:
            panic("out of cheese")
        assert caught.value.code == 5
        assert service.echo_u32(3) == 3


def test_resource_methods_work_until_close(service: Conformance) -> None:
    with service.counter(3) as counter:
        assert counter.add(4) == 7
        assert counter.value_later() == 7
        assert list(counter.steps(3)) == [8, 9, 10]
        assert service.counters() == 1
    assert counter.closed
    with pytest.raises(thalweg.Closed):
        counter.value()


def test_resource_is_dropped_with_its_object(service: Conformance) -> None:
    counter = service.counter(1)
    assert service.counters() == 1
    del counter
    assert service.counters() == 0


def test_resource_passed_by_value_is_closed(service: Conformance) -> None:
    counter = service.counter(5)
    assert service.counter_finish(counter) == 5
    assert counter.closed
    with pytest.raises(thalweg.Closed):
        service.counter_finish(counter)


def test_resource_of_another_client_is_refused(
    service: Conformance, conformance_library: str
) -> None:
    with Conformance.open(conformance_library) as other:
        mine, other_one = service.counter(1), other.counter(2)
        with pytest.raises(thalweg.Error) as caught:
            service.counter_sum(mine, other_one)
        assert caught.value.code in (9, 10)
        assert other_one.value() == 2


def test_resource_of_another_type_is_refused(service: Conformance) -> None:
    even = service.even(4)
    with pytest.raises(thalweg.BadArgument):
        service.counter_finish(even)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="resource"):
        service.counter_finish(3)  # type: ignore[arg-type]


def test_borrowed_resource_stays_open(service: Conformance) -> None:
    left, right = service.counter(1), service.counter(2)
    total = service.counter_sum(left, right)
    assert isinstance(total, Counter)
    assert (left.value(), right.value(), total.value()) == (1, 2, 3)


def test_threads_call_one_client_concurrently(service: Conformance) -> None:
    def call(number: int) -> bool:
        return all(
            service.echo_u64(number * 1000 + i) == number * 1000 + i for i in range(200)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(16)))


def test_waiting_call_releases_the_gil(service: Conformance) -> None:
    # The call ends once another thread has run. A wait that held the GIL would not end.
    def tick() -> None:
        while not service.waiting():
            time.sleep(0.001)
        for _ in range(20):
            time.sleep(0.001)
        service.let_go()

    thread = threading.Thread(target=tick)
    thread.start()
    service.held_up()
    thread.join()


def test_client_close_cancels_call_of_another_thread(
    conformance_library: str,
) -> None:
    client = Conformance.open(conformance_library)
    ended: list[BaseException] = []

    def call() -> None:
        try:
            client.never()
        except thalweg.Error as error:
            ended.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while not client.waiting():
        time.sleep(0.001)
    client.close()
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in ended] == [thalweg.Cancelled]


def test_call_during_client_close_is_cancelled_or_closed(
    conformance_library: str,
) -> None:
    def call(client: Conformance) -> type[BaseException] | None:
        try:
            client.never()
        except thalweg.Error as error:
            return type(error)
        return None

    ended = set()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(500):
            client = Conformance.open(conformance_library)
            calls = [pool.submit(call, client) for _ in range(4)]
            client.close()
            ended |= {one.result() for one in calls}
    assert ended <= {thalweg.Cancelled, thalweg.Closed}
