"""Calls with contents, each reply checked: one at a time, 64 in flight, and as events.

Each thread uses a client or a Unix socket. The C code in hosts/c/unix_peer.h runs the
thread that answers the socket, and defines the message.
"""

import asyncio
import ctypes
import itertools
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from time import perf_counter_ns

from thalweg_lab import AsyncLab, Lab

WINDOW = 64
"""Requests in flight."""

BATCH = 256
"""Records of a batch of events."""

EVENTS = 0xFFFFFFFF
"""A request of this size asks for events."""

SCALARS = struct.Struct("=qqd")
HEAD = struct.Struct("=I")
NUMBERS = struct.Struct("=QQ")


class Requests:
    """What is asked, by its number: service/src/predicates.rs."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._data = bytearray(size)

    def scalars(self, n: int) -> tuple[int, int, float]:
        """The contents of a request of size 0."""
        return n, 2 * n, 2.0

    def data(self, n: int) -> bytes:
        """The contents of a request of another size."""
        self._data[0] = self._data[-1] = n % 256
        return bytes(self._data)

    def frame(self, n: int) -> bytes:
        """As the socket has it."""
        body = self.data(n) if self.size else SCALARS.pack(*self.scalars(n))
        return HEAD.pack(self.size) + body


def parity(a: int, b: int, x: float) -> bool:
    """The predicate of scalars."""
    return (a + b + x) % 2 == 0


def payload(data: bytes | memoryview) -> bool:
    """The predicate of bytes."""
    return data[0] == data[-1] and data[0] % 2 == 0


class Replies:
    """What came back."""

    def __init__(self) -> None:
        self.answered = 0
        self.true_ones = 0

    def add(self, reply: bool) -> None:
        """The next one, which must be the predicate of its number."""
        if reply != (self.answered % 2 == 0):
            sys.exit(f"the reply to request {self.answered} is wrong")
        self.answered += 1
        self.true_ones += reply


class Peer:
    """A socket that a thread of C's serves."""

    def __init__(self, bare: str) -> None:
        self.socket = socket.socket(fileno=ctypes.CDLL(bare).unix_peer_start())


def calls(lab: Lab, size: int, count: int, replies: Replies) -> None:
    """One call at a time."""
    requests = Requests(size)
    for n in range(count):
        if size:
            replies.add(lab.payload(requests.data(n)))
        else:
            replies.add(lab.parity(*requests.scalars(n)))


def events(lab: Lab, size: int, count: int, replies: Replies) -> None:
    """All of a stream, read in place."""
    if size:
        for payloads in lab.payloads(count, size).batches(BATCH):
            for record in payloads:
                data = record.data
                replies.add(len(data) == size and payload(data))
    else:
        for scalars in lab.parities(count).batches(BATCH):
            for one in scalars:
                replies.add(parity(one.a, one.b, one.x))


def unix_calls(peer: Peer, size: int, count: int, replies: Replies) -> None:
    """One request at a time."""
    requests = Requests(size)
    for n in range(count):
        peer.socket.sendall(requests.frame(n))
        replies.add(peer.socket.recv(1) == b"\x01")


def unix_events(peer: Peer, size: int, count: int, replies: Replies) -> None:
    """Receives requests that the other end sends one after the other."""
    peer.socket.sendall(HEAD.pack(EVENTS) + NUMBERS.pack(count, size))
    length = HEAD.size + (size or SCALARS.size)
    came = bytearray()
    while replies.answered < count:
        more = peer.socket.recv(2 * 65540)
        if not more:
            sys.exit("the socket ended")
        came += more
        at = 0
        while len(came) - at >= length:
            if size:
                replies.add(payload(memoryview(came)[at + HEAD.size : at + length]))
            else:
                replies.add(parity(*SCALARS.unpack_from(came, at + HEAD.size)))
            at += length
        del came[:at]


def run(
    library: str, bare: str, way: str, size: int, count: int, threads: int
) -> dict[str, int]:
    """Makes `count` requests of `size` bytes in total, by `threads` threads."""
    all_replies = [Replies() for _ in range(threads)]
    share = count // threads
    labs: list[Lab] = []
    peers: list[Peer] = []
    work: list[Callable[[], None]] = []
    for replies in all_replies:
        if way.startswith("unix-"):
            peer = Peer(bare)
            peers.append(peer)
            ask_peer = unix_events if way == "unix-events" else unix_calls
            work.append(partial(ask_peer, peer, size, share, replies))
        else:
            lab = Lab.open(library)
            labs.append(lab)
            ask = events if way == "events" else calls
            work.append(partial(ask, lab, size, share, replies))
    ready = threading.Barrier(threads + 1)

    def thread(todo: Callable[[], None]) -> None:
        ready.wait()
        todo()

    running = [threading.Thread(target=thread, args=(todo,)) for todo in work]
    for one in running:
        one.start()
    ready.wait()
    began = perf_counter_ns()
    for one in running:
        one.join()
    spent = perf_counter_ns() - began
    for lab in labs:
        lab.close()
    for peer in peers:
        peer.socket.close()
    return told(spent, all_replies)


def told(spent: int, all_replies: Iterable[Replies]) -> dict[str, int]:
    """As the line's answer has it."""
    replies = list(all_replies)
    return {
        "ns": spent,
        "records": sum(one.answered for one in replies),
        "checksum": sum(one.true_ones for one in replies),
    }


async def windowed(count: int, call: Callable[[int], Awaitable[bool]]) -> Replies:
    """`WINDOW` tasks that call one after the other; each reply is checked against its own number."""
    replies = Replies()
    numbers = itertools.count()

    async def caller() -> None:
        while (n := next(numbers)) < count:
            if await call(n) != (n % 2 == 0):
                sys.exit(f"the reply to request {n} is wrong")
            replies.answered += 1
            replies.true_ones += n % 2 == 0

    await asyncio.gather(*(caller() for _ in range(WINDOW)))
    return replies


async def async_calls(lab: AsyncLab, size: int, count: int) -> Replies:
    """Makes the requests through the client."""
    requests = Requests(size)
    if size:
        return await windowed(count, lambda n: lab.payload(requests.data(n)))
    return await windowed(count, lambda n: lab.parity(*requests.scalars(n)))


async def async_events(lab: AsyncLab, size: int, count: int) -> Replies:
    """All of a stream, read in place."""
    replies = Replies()
    if size:
        async for payloads in (await lab.payloads(count, size)).batches(BATCH):
            for record in payloads:
                data = record.data
                replies.add(len(data) == size and payload(data))
    else:
        async for scalars in (await lab.parities(count)).batches(BATCH):
            for one in scalars:
                replies.add(parity(one.a, one.b, one.x))
    return replies


async def unix_async_calls(bare: str, size: int, count: int) -> Replies:
    """By one socket, whose answers come in the order of the requests."""
    peer = Peer(bare)
    reader, writer = await asyncio.open_unix_connection(sock=peer.socket)
    requests = Requests(size)
    waiting: deque[asyncio.Future[bool]] = deque()

    async def resolve() -> None:
        while answers := await reader.read(WINDOW):
            for answer in answers:
                waiting.popleft().set_result(answer == 1)

    async def call(n: int) -> bool:
        future = asyncio.get_running_loop().create_future()
        waiting.append(future)
        writer.write(requests.frame(n))
        await writer.drain()
        return bool(await future)

    resolving = asyncio.ensure_future(resolve())
    replies = await windowed(count, call)
    resolving.cancel()
    writer.close()
    return replies


async def async_run(
    library: str, bare: str, way: str, size: int, count: int
) -> dict[str, int]:
    """The same on the running loop: 64 in flight, or as events."""
    async with AsyncLab.open(library) as lab:
        began = perf_counter_ns()
        match way:
            case "async":
                replies = await async_calls(lab, size, count)
            case "events":
                replies = await async_events(lab, size, count)
            case "unix-async":
                replies = await unix_async_calls(bare, size, count)
            case _:
                sys.exit(f"not a command: e2e-{way}")
        return told(perf_counter_ns() - began, [replies])
