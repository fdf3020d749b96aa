"""Batches as arrays.

numpy reads them through the buffer protocol, Arrow through its C data interface. Only
the columns of records for Arrow are copied.
"""

import asyncio
import gc
import hashlib
import subprocess
import sys
from collections.abc import Iterator

import numpy
import pyarrow  # type: ignore[import-untyped]
import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, Sample, SampleView


def address(buffer: memoryview) -> int:
    """The address of the first byte of a buffer."""
    interface = numpy.asarray(buffer).__array_interface__
    assert interface["data"][1], "read-only"
    return int(interface["data"][0])


def batches(
    service: Conformance, count: int
) -> Iterator[thalweg.Batch[Sample, SampleView]]:
    return service.samples(count).batches()


def test_column_holds_the_field_of_each_record(service: Conformance) -> None:
    with service.samples(1000) as stream:
        seen = 0
        for batch in stream.batches(max=100):
            numbers = numpy.asarray(batch.column("number"))
            assert numbers.dtype == numpy.uint32
            assert numbers.tolist() == [view.number for view in batch]
            deep = numpy.asarray(batch.column("all.a_f64"))
            assert deep.dtype == numpy.float64
            assert deep.tolist() == [view.all.a_f64 for view in batch]
            assert batch.column("all.a_bool").tolist() == [
                view.all.a_bool for view in batch
            ]
            seen += len(batch)
    assert seen == 1000


def test_array_holds_all_fields_of_fixed_size(service: Conformance) -> None:
    batch = next(batches(service, 100))
    array = numpy.asarray(batch.array())
    assert array.shape == (len(batch),)
    assert array.dtype.names == (
        *("number", "at", "all", "weight", "color", "days", "pair"),
    )
    assert array["at"]["y"].tolist() == [view.at.y for view in batch]
    for name in batch[0].all.__slots__:
        ours = [getattr(view.all, name) for view in batch]
        if name == "a_char":
            ours = [ord(char) for char in ours]
        assert array["all"][name].tolist() == ours, name
    weights = [
        weight if some else None
        for some, weight in zip(
            array["weight"]["some"].tolist(),
            array["weight"]["value"].tolist(),
            strict=True,
        )
    ]
    assert weights == [view.weight for view in batch]
    assert array["days"].tolist() == [view.days.value for view in batch]
    assert array["pair"]["f1"].tolist() == [view.pair[1] for view in batch]


def test_number_batch_is_contiguous_array(service: Conformance) -> None:
    batch = next(service.count(5, 100).batches())
    array = numpy.asarray(batch.array())
    assert array.dtype == numpy.uint64
    assert array.flags.c_contiguous
    assert array.tolist() == list(range(5, 5 + len(batch)))
    assert batch.array().tolist() == array.tolist()


def test_arrays_and_columns_share_batch_memory(service: Conformance) -> None:
    batch = next(batches(service, 100))
    start = address(batch.array())
    assert address(batch.array()) == start
    assert address(batch.column("number")) == start
    array = numpy.asarray(batch.array())
    field = array.dtype.fields
    assert field is not None
    assert address(batch.column("at")) == start + field["at"][1]
    assert numpy.asarray(batch.column("at")).strides == array.strides
    numbers = next(service.count(0, 100).batches())
    arrow = pyarrow.array(numbers)
    assert arrow.buffers()[1].address == address(numbers.array())


def test_array_keeps_memory_after_batch_release(service: Conformance) -> None:
    stream = service.count(0, 100_000)
    reading = stream.batches()
    batch = next(reading)
    expected = [value for value in batch]
    array = numpy.asarray(batch.array())
    column = pyarrow.array(batch)
    place = address(batch.array())
    batch.release()
    with pytest.raises(thalweg.Closed):
        batch.array()
    with pytest.raises(thalweg.Closed):
        pyarrow.array(batch)
    del batch
    for other in reading:
        assert address(other.array()) != place, "the memory is still in use"
    stream.close()
    service.close()
    gc.collect()
    assert array.tolist() == column.to_pylist() == expected


def test_batch_memory_is_reused_after_last_array_is_freed(
    service: Conformance,
) -> None:
    reading = service.endless().batches()
    batch = next(reading)
    arrays = [batch.array(), pyarrow.array(batch)]
    place = address(batch.array())

    def used() -> bool:
        return any(address(next(reading).array()) == place for _ in range(200))

    batch.release()
    del batch
    while arrays:
        assert not used()
        arrays.pop()
    assert used()


def test_arrays_outlive_event_loop(conformance_library: str) -> None:
    async def read() -> list[numpy.ndarray]:
        async with AsyncConformance.open(conformance_library) as service:
            stream = await service.count(0, 10_000)
            return [numpy.asarray(batch.array()) async for batch in stream.batches()]

    arrays = asyncio.run(read())
    gc.collect()
    assert numpy.concatenate(arrays).tolist() == list(range(10_000))


def test_arrow_batch_holds_text_lists_and_nulls(service: Conformance) -> None:
    seen: list[Sample] = []
    tables = []
    for batch in service.samples(1000).batches():
        seen += batch.objects()
        tables.append(pyarrow.record_batch(batch))
    rows = pyarrow.Table.from_batches(tables).to_pylist()
    assert len(rows) == len(seen) == 1000
    for row, made in zip(rows, seen, strict=True):
        assert row["number"] == made.number
        assert row["name"] == made.name
        assert row["weight"] == made.weight
        assert row["at"] == {"x": made.at.x, "y": made.at.y}
        assert row["all"]["a_bool"] is made.all.a_bool
        assert row["all"]["a_s64"] == made.all.a_s64
        assert row["all"]["a_f32"] == made.all.a_f32
        assert row["corners"] == [
            {"x": corner.x, "y": corner.y} for corner in made.corners
        ]
    tables[0].validate(full=True)


def test_arrow_array_of_items_equals_objects(service: Conformance) -> None:
    for batch in service.items(500).batches():
        objects = batch.objects()
        array = pyarrow.array(batch)
        array.validate(full=True)
        assert array.type.field("blob").nullable
        assert not array.type.field("name").nullable
        assert array.to_pylist() == [
            {
                "number": item.number,
                "name": item.name,
                "tags": item.tags,
                "blob": item.blob,
            }
            for item in objects
        ]


def test_arrow_stream_becomes_table_of_all_records(service: Conformance) -> None:
    objects = list(service.samples(10_000))
    table = pyarrow.table(service.samples(10_000))
    table.validate(full=True)
    assert table.column("name").to_pylist() == [sample.name for sample in objects]
    assert table.column("number").to_pylist() == [sample.number for sample in objects]
    assert len(table) == 10_000


def test_arrow_stream_of_numbers_becomes_chunked_array(service: Conformance) -> None:
    numbers = pyarrow.chunked_array(service.count(0, 20_000))
    assert numbers.to_pylist() == list(range(20_000))


def test_arrow_stream_is_read_batch_by_batch(service: Conformance) -> None:
    stream = service.samples(5_000)
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    first = reader.read_next_batch()
    assert 0 < len(first) <= 8_192
    assert len(first) + len(reader.read_all()) == 5_000
    assert stream.closed


def test_arrow_stream_without_records_has_its_schema(service: Conformance) -> None:
    table = pyarrow.table(service.samples(0))
    assert len(table) == 0
    assert table.schema.names[0] == "number"


def test_arrow_stream_raises_error_of_its_stream(service: Conformance) -> None:
    with pytest.raises(OSError, match="TimedOut"):
        pyarrow.chunked_array(service.endless(timeout=0.2))


def test_arrow_stream_of_closed_stream_is_empty(service: Conformance) -> None:
    stream = service.samples(10)
    stream.close()
    assert list(stream) == []
    assert len(pyarrow.table(stream)) == 0


def test_arrow_stream_refuses_half_read_stream_and_type_without_column(
    service: Conformance,
) -> None:
    stream = service.samples(5_000)
    # A batch may hold a single record, and then no part of it is left to read.
    left = 5_000
    for _ in stream:
        left -= 1
        try:
            stream.__arrow_c_stream__()
        except thalweg.BadArgument:
            break
    with pytest.raises(thalweg.BadArgument, match="read as objects"):
        pyarrow.table(stream)
    assert len(list(stream)) == left
    with pytest.raises(TypeError, match="Arrow has no column of ShapeCircle"):
        service.shapes(10).__arrow_c_stream__()


def test_unused_arrow_stream_capsule_is_freed(service: Conformance) -> None:
    stream = service.samples(10)
    for _ in range(100):
        stream.__arrow_c_stream__()
    assert len(pyarrow.table(stream)) == 10


def test_unused_arrow_array_capsules_are_freed(service: Conformance) -> None:
    batch = next(batches(service, 100))
    for _ in range(100):
        batch.__arrow_c_array__()
        numbers = next(service.count(0, 10).batches())
        numbers.__arrow_c_array__(None)
        # Import only one of the two capsules.
        pyarrow.DataType._import_from_c_capsule(batch.__arrow_c_array__()[0])


def test_type_without_column_is_refused(service: Conformance) -> None:
    batch = next(batches(service, 10))
    for name in ("name", "corners"):
        with pytest.raises(TypeError, match=f"samples: {name}"):
            batch.column(name)
    for name in ("", "none", "at.z", "number.x", "at."):
        with pytest.raises(KeyError):
            batch.column(name)
    shapes = next(service.shapes(10).batches())
    with pytest.raises(TypeError, match="a record has no items of one size"):
        shapes.array()
    with pytest.raises(TypeError, match="Arrow has no column of ShapeCircle"):
        pyarrow.array(shapes)


def test_array_is_read_only(service: Conformance) -> None:
    batch = next(batches(service, 10))
    column = batch.column("number")
    assert column.readonly
    with pytest.raises(TypeError):
        column[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        numpy.asarray(column)[0] = 1
    # hashlib needs a contiguous buffer, and a column is strided.
    with pytest.raises(BufferError):
        hashlib.sha256(column.obj)
    numbers = next(service.count(0, 10).batches()).array()
    assert hashlib.sha256(numbers.obj).digest() == hashlib.sha256(numbers).digest()


def test_stream_without_records_yields_no_batch(service: Conformance) -> None:
    assert not list(batches(service, 0))


def test_package_does_not_import_numpy() -> None:
    program = "import sys, thalweg; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_arrays_survive_interpreter_shutdown(conformance_library: str) -> None:
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy, pyarrow
from thalweg_conformance import Conformance
service = Conformance.open({conformance_library!r})
batch = next(service.count(0, 100).batches())
kept = [numpy.asarray(batch.array()), pyarrow.array(batch), batch.array()]
print(int(kept[0].sum()) == sum(range(len(batch))))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert (run.stdout, run.stderr) == ("True\n", "")
