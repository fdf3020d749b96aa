"""Ticks of 64 bytes: the host's own time for one, the whole way of one, and a heartbeat while the collector works."""

import gc
import time
from time import perf_counter_ns
from typing import Any

import numpy
from reading import BATCH, CAPACITY, FILL_SECONDS
from thalweg import Batch
from thalweg_lab import Lab, Tick, TickView
from tick import one_by_one, touch

TickBatch = Batch[Tick, TickView]

COLUMNS = ("number", "bid", "volume")
"""What every host touches of a tick."""


def touch_objects(batch: TickBatch) -> int:
    """Sums the fields of ticks copied to objects."""
    return touch(batch.objects())


def touch_columns(batch: TickBatch) -> int:
    """By three columns, each in one go."""
    return sum(int(numpy.asarray(batch.column(name)).sum()) for name in COLUMNS)


def touch_array(batch: TickBatch) -> int:
    """The same by one array of structures."""
    array = numpy.asarray(batch.array())
    return sum(int(array[name].sum()) for name in COLUMNS)


TOUCHES = {
    "views": touch,
    "objects": touch_objects,
    "columns": touch_columns,
    "arrays": touch_array,
}


def ready(lab: Lab, how: str, count: int) -> dict[str, int]:
    """Times acquire, reading and release of batches that are ready after each wait."""
    touch_batch = TOUCHES[how]
    total = records = spent = until = 0
    batches = lab.ticks(count, BATCH).batches(BATCH)
    while True:
        if records >= until:
            time.sleep(FILL_SECONDS)
            until = records + CAPACITY
        began = perf_counter_ns()
        batch = next(batches, None)
        if batch is None:
            return {"ns": spent, "records": records, "checksum": total}
        records += len(batch)
        total += touch_batch(batch)
        batch.release()
        spent += perf_counter_ns() - began


class Kept:
    """What is built once."""

    def __init__(self) -> None:
        self.ticks: numpy.ndarray[Any, Any] = numpy.zeros(0)
        self.live: list[list[int]] = []


KEPT = Kept()


def array(lab: Lab, count: int) -> dict[str, int]:
    """The columns of one array of `count` ticks, as many at a time as a batch has; it is built once and not timed."""
    if len(KEPT.ticks) != count:
        batches = lab.ticks(count, BATCH).batches(BATCH)
        KEPT.ticks = numpy.concatenate(
            [numpy.asarray(batch.array()).copy() for batch in batches]
        )
    total = 0
    began = perf_counter_ns()
    for first in range(0, count, BATCH):
        some = KEPT.ticks[first : first + BATCH]
        total += sum(int(some[name].sum()) for name in COLUMNS)
    return {"ns": perf_counter_ns() - began, "records": count, "checksum": total}


def whole(lab: Lab, how: str, count: int) -> dict[str, int]:
    """`count` ticks from the call on: how long, producer and all."""
    began = perf_counter_ns()
    stream = lab.ticks(count, BATCH)
    if how == "one":
        total, records = one_by_one(stream)
    else:
        touch_batch = TOUCHES[how]
        total = records = 0
        for batch in stream.batches(BATCH):
            records += len(batch)
            total += touch_batch(batch)
    return {"ns": perf_counter_ns() - began, "records": records, "checksum": total}


PERIOD_US = 1_000
"""Period of the heartbeat in microseconds."""

LITTER = 200
"""Cycles that each beat leaves to the collector."""

FULL_EVERY = 1_000
"""Beats between two full collections that the program asks for."""

BYTES_OF_ONE = 104
"""A list of one number, its number, and its place in the list of all."""

COLLECTORS = ("on", "full", "frozen")
"""As it is; with full collections that the program asks for; the same after `gc.freeze()`."""


def pause(lab: Lab, beats: int, live_mib: int, collector: int) -> dict[str, object]:
    """Ns between two beats, of each, with so much live that the collector has to look at."""
    objects = live_mib * 2**20 // BYTES_OF_ONE
    if len(KEPT.live) != objects:
        KEPT.live = []
        KEPT.live = [[number] for number in range(2**40, 2**40 + objects)]
    how = COLLECTORS[collector]
    gc.collect()
    if how == "frozen":
        gc.freeze()
    collections = gc.get_stats()[2]["collections"]
    gaps: list[int] = []
    last = None
    for beat in lab.heartbeat(beats, PERIOD_US):
        now = perf_counter_ns()
        if last is not None:
            gaps.append(now - last)
        last = now
        for _ in range(LITTER):
            litter: list[object] = [beat]
            litter.append(litter)
        if how != "on" and beat.number % FULL_EVERY == FULL_EVERY // 2:
            gc.collect()
    collections = gc.get_stats()[2]["collections"] - collections
    gc.unfreeze()
    return {"latencies": gaps, "full_collections": collections}
