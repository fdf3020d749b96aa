"""Calls a library with ctypes and CBOR: no generated code, and no package but this file."""

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_uint32, c_uint64, c_void_p
from typing import Any

import pytest

TW_OK, TW_ERROR, TW_ARGUMENT = 0, 1, 10
TW_CBOR = 1
TW_METHOD_CBOR = 32
FOREVER = 2**64 - 1

# The functions and the other fields of the table that follow its methods, in the order of
# thalweg.h.
FIELDS = """now client_open client_close port_open port_close port_fd port_arm port_wait port_reap
release submit cancel take_handle resource_drop stream_acquire stream_release stream_arm stream_close
transcode stream_subscribe stream_join stream_fd call_inline client_set_host host_call_answer
host_call_deadline stream_tee stream_stats stream_retain_batch retained_batch_release stream_new
stream_send stream_finish imports_layout client_set_layouts stream_error imports import_count
client_set_format release_all port_wake log_set_sink counters"""


class Method(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("hashes", c_uint64 * 4),
        ("flags", c_uint32),
        ("description_size", c_uint32),
        ("description", c_void_p),
    ]


class Table(ctypes.Structure):
    _fields_ = [
        ("abi", c_uint32),
        ("size", c_uint32),
        ("package", c_char_p),
        ("version", c_char_p),
        ("core", c_char_p),
        ("layout", c_uint64),
        ("methods", POINTER(Method)),
        ("method_count", c_uint32),
        ("reserved", c_uint32),
        *((name, c_void_p) for name in FIELDS.split()),
    ]


class Submission(ctypes.Structure):
    _fields_ = [
        ("token", c_uint64),
        ("client", c_uint64),
        ("method", c_uint32),
        ("flags", c_uint32),
        ("args", c_char_p),
        ("args_size", c_uint64),
        ("deadline_ns", c_uint64),
        ("call", c_uint64),
    ]


class Completion(ctypes.Structure):
    _fields_ = [
        ("token", c_uint64),
        ("call", c_uint64),
        ("kind", c_uint32),
        ("code", c_uint32),
        ("data", c_void_p),
        ("data_size", c_uint64),
        ("message", c_void_p),
        ("message_size", c_uint32),
        ("retryable", c_uint32),
        ("owner", c_uint64),
    ]


def encode(value: Any) -> bytes:
    """CBOR with integers below 256 and short texts."""

    def head(major: int, number: int) -> bytes:
        if number < 24:
            return bytes([major << 5 | number])
        return bytes([major << 5 | 24, number])

    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        text = value.encode()
        return head(3, len(text)) + text
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    pairs = (encode(key) + encode(item) for key, item in value.items())
    return head(5, len(value)) + b"".join(pairs)


class Library:
    """A client of the library, with a port."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        library.tw_library.restype = POINTER(Table)
        self.table: Table = library.tw_library(2).contents
        # Functions that were added later are behind these.
        assert self.table.size >= ctypes.sizeof(Table)
        self.client, self.port = c_uint64(), c_uint64()
        assert (
            self.function("client_open", c_void_p, c_void_p)(byref(self.client), None)
            == TW_OK
        )
        open_port = self.function("port_open", c_uint32, c_void_p, c_void_p)
        assert open_port(4, byref(self.port), None) == TW_OK

    def function(self, name: str, *parameters: type) -> Any:
        return ctypes.CFUNCTYPE(c_uint32, *parameters)(getattr(self.table, name))

    def close(self) -> None:
        self.function("port_close", c_uint64, c_void_p)(self.port, None)
        self.function("client_close", c_uint64, c_void_p)(self.client, None)

    def set_format(self) -> int:
        code: int = self.function("client_set_format", c_uint64, c_uint32, c_void_p)(
            self.client, TW_CBOR, None
        )
        return code

    def call(self, name: bytes, value: Any) -> tuple[int, bytes]:
        """The code of the call, and the CBOR of its result or error."""
        methods = [
            self.table.methods[number] for number in range(self.table.method_count)
        ]
        number = [method.name for method in methods].index(name)
        assert methods[number].flags & TW_METHOD_CBOR
        args = encode(value)
        submission = Submission(0, self.client.value, number, 0, args, len(args), 0, 0)
        accepted, count = c_uint32(), c_uint32()
        submit = self.function(
            "submit", c_uint64, c_void_p, c_uint32, c_void_p, c_void_p
        )
        code: int = submit(self.port, byref(submission), 1, byref(accepted), None)
        if code != TW_OK:
            return code, b""
        wait = self.function("port_wait", c_uint64, c_uint64, c_void_p)
        assert wait(self.port, FOREVER, None) == TW_OK
        completion = Completion()
        reap = self.function(
            "port_reap", c_uint64, c_void_p, c_uint32, c_void_p, c_void_p
        )
        assert reap(self.port, byref(completion), 1, byref(count), None) == TW_OK
        assert count.value == 1
        data = ctypes.string_at(completion.data, completion.data_size)
        ctypes.CFUNCTYPE(None, c_void_p)(self.table.release)(byref(completion))
        return completion.code, data


@pytest.fixture
def library(conformance_library: str) -> Iterator[Library]:
    opened = Library(conformance_library)
    yield opened
    opened.close()


def test_function_takes_and_returns_cbor(library: Library) -> None:
    assert library.set_format() == TW_OK
    given: dict[str, Any] = {
        "type": 1,
        "match": "m",
        "list": [2],
        "bool": {"x": 7, "y": -9},
    }
    code, data = library.call(b"conformance.several", given)
    # A list of numbers is returned as a typed array: 69, little-endian u16.
    assert code == TW_OK
    assert data == b"\x84\x01\x61m\xd8\x45\x42\x02\x00" + encode({"x": 7, "y": -9})
    # A missing option is none.
    del given["bool"]
    code, data = library.call(b"conformance.several", given)
    assert (code, data[-1:]) == (TW_OK, encode(None))
    assert library.call(b"conformance.twice", {"value": 100}) == (TW_OK, encode(200))


def test_error_of_the_function_is_cbor(library: Library) -> None:
    assert library.set_format() == TW_OK
    for error in ({"code": 7}, "unknown", {"at": ["here", {"x": 1, "y": 2}]}):
        answer = library.call(b"conformance.fail", {"how": error})
        assert answer == (TW_ERROR, encode(error))
    assert library.call(b"conformance.fail", {"how": None}) == (TW_OK, encode(7))


def test_wrong_cbor_is_refused(library: Library) -> None:
    assert library.set_format() == TW_OK
    for value in (None, {}, {"value": -1}, {"value": "1"}, {"value": 1, "more": 2}):
        assert library.call(b"conformance.twice", value) == (TW_ARGUMENT, b"")
    assert library.set_format() == TW_ARGUMENT


def test_client_without_the_format_takes_no_cbor(library: Library) -> None:
    code, _ = library.call(b"conformance.twice", {"value": 1})
    assert code == TW_ARGUMENT
