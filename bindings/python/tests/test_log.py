"""Log records of the libraries, and their counters."""

import itertools
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import thalweg
from thalweg_conformance import Conformance

NUMBERS = itertools.count()


class Records(logging.Handler):
    """Keeps the records of a logger of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[logging.LogRecord] = []
        self.logger = logging.getLogger(f"test_log_{next(NUMBERS)}")
        self.logger.addHandler(self)
        self.logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)

    def wait_for(self, text: str) -> logging.LogRecord:
        for _ in range(1000):
            for record in self.all:
                if text in record.getMessage():
                    return record
            time.sleep(0.01)
        raise AssertionError(f"no record with {text!r} in {self.all}")


@pytest.fixture
def records() -> Iterator[Records]:
    yield Records()
    thalweg.log_to(None)


def panic(service: Conformance, text: str) -> None:
    with pytest.raises(thalweg.GuestPanicked):
        service.panic(text)


def test_panic_is_an_error_with_its_text_and_time(
    service: Conformance, records: Records
) -> None:
    thalweg.log_to(records.logger)
    panic(service, "no more 100 % paper €")
    record = records.wait_for("paper")
    assert record.getMessage() == "conformance.panic panicked: no more 100 % paper €"
    assert record.levelno == logging.ERROR
    assert record.name == f"{records.logger.name}.service"
    assert abs(record.created - time.time()) < 60
    assert 0 <= record.msecs < 1000


def test_removed_logger_receives_earlier_records_and_no_later_ones(
    service: Conformance, records: Records
) -> None:
    thalweg.log_to(records.logger)
    panic(service, "earlier")
    thalweg.log_to(None)
    assert [record.getMessage() for record in records.all] == [
        "conformance.panic panicked: earlier"
    ]
    panic(service, "later")
    thalweg.log_to(None)
    assert len(records.all) == 1
    assert "thalweg-log" not in [thread.name for thread in threading.enumerate()]


def test_another_logger_replaces_the_first(
    service: Conformance, records: Records
) -> None:
    second = Records()
    thalweg.log_to(records.logger)
    thalweg.log_to(second.logger)
    panic(service, "to the second")
    second.wait_for("to the second")
    assert not records.all


def test_level_of_a_child_logger_filters(
    service: Conformance, records: Records
) -> None:
    records.logger.getChild("service").setLevel(logging.CRITICAL)
    thalweg.log_to(records.logger)
    panic(service, "unwanted")
    thalweg.log_to(None)
    assert not records.all


def test_exception_of_a_handler_loses_no_other_record(
    service: Conformance, records: Records, capfd: pytest.CaptureFixture[str]
) -> None:
    class Bad(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if "bad" in record.getMessage():
                raise ValueError("on purpose")
            return True

    records.addFilter(Bad())
    thalweg.log_to(records.logger)
    panic(service, "bad")
    panic(service, "good")
    records.wait_for("good")
    assert "ValueError: on purpose" in capfd.readouterr().err


def test_library_opened_later_is_heard(
    conformance_library: str, records: Records
) -> None:
    program = f"""
import logging, thalweg, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s: %(message)s")
thalweg.log_to(logging.getLogger("core"), logging.INFO)
from thalweg_conformance import Conformance
logging.getLogger("core").setLevel(logging.INFO)
with Conformance.open({conformance_library!r}) as service:
    try:
        service.panic("at the end")
    except thalweg.GuestPanicked:
        pass
"""
    # The program ends at once, so the records are handled at its exit.
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert "ERROR core.service: conformance.panic panicked: at the end" in lines
    assert any(line.startswith("INFO core.runtime: a runtime of") for line in lines)


def test_forked_child_begins_without_a_logger(
    conformance_library: str, service: Conformance, records: Records
) -> None:
    thalweg.log_to(records.logger)
    panic(service, "in the parent")
    records.wait_for("in the parent")

    def child() -> None:
        with Conformance.open(conformance_library) as own:
            panic(own, "to nobody")
            mine = Records()
            thalweg.log_to(mine.logger)
            panic(own, "in the child")
            mine.wait_for("in the child")
            thalweg.log_to(None)
            assert len(mine.all) == 1

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    panic(service, "in the parent again")
    records.wait_for("in the parent again")
    assert len(records.all) == 2


def test_counters_of_a_library_count_its_clients_and_calls(
    conformance_library: str, service: Conformance
) -> None:
    before = thalweg.counters()[conformance_library]
    assert before["clients"] >= 1
    assert before["workers"] >= 1
    with Conformance.open(conformance_library) as other:
        assert other.echo_u8(7) == 7
        during = thalweg.counters()[conformance_library]
    assert during["clients"] == before["clients"] + 1
    assert during["slices"] > before["slices"]
    assert thalweg.counters()[conformance_library]["clients"] == before["clients"]
    assert service.echo_u8(8) == 8
