#!/usr/bin/env python3
"""An HTTP server on asyncio that uses the service: web.py LIBRARY [PORT].

GET /digest?text=TEXT    the digest of TEXT
GET /set?NAME=VALUE      changes a setting
GET /settings            server-sent events: all settings, then each change

The package `thalweg` must be installed; `thalweg_recipes` is the generated package in this folder.
"""

import asyncio
import signal
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated" / "python"))

import thalweg
from thalweg_recipes import AsyncRecipes, Setting

# How long a stopping server waits for requests, in seconds.
GRACE = 5.0


class Server:
    """Answers requests with one client, which all connections share."""

    def __init__(self, recipes: AsyncRecipes) -> None:
        self.recipes = recipes
        self.requests: set[asyncio.Task[None]] = set()

    async def connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answers the request of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.requests.add(task)
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            target = urlsplit(request.split(b" ", 2)[1].decode())
            query = dict(parse_qsl(target.query))
            await self.answer(target.path, query, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the browser has left
        finally:
            writer.close()
            self.requests.discard(task)

    async def answer(
        self, path: str, query: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        """Calls the service. The code of an error decides the HTTP status."""
        try:
            if path == "/digest":
                digest = await self.recipes.digest(query["text"], timeout=2)
                writer.write(response(200, f"{digest:016x}\n"))
            elif path == "/set":
                for name, value in query.items():
                    await self.recipes.set(Setting(name, value), timeout=2)
                writer.write(response(200, "done\n"))
            elif path == "/settings":
                await self.send_settings(writer)
            else:
                writer.write(response(404, "no such page\n"))
        except KeyError as missing:
            writer.write(response(400, f"{missing} is missing\n"))
        except thalweg.TimedOut:
            writer.write(response(504, "the service did not answer in time\n"))
        except thalweg.Error as error:
            status = 503 if error.retryable else 500
            writer.write(response(status, f"{error}\n"))

    async def send_settings(self, writer: asyncio.StreamWriter) -> None:
        """Sends each change as an event. `drain` waits for a slow browser, and the stream then
        skips values that a newer one has replaced."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        async with await self.recipes.watch() as changes:
            async for change in changes:
                writer.write(f"data: {change.name}={change.value}\n\n".encode())
                await writer.drain()

    async def stop(self) -> None:
        """Lets requests finish for `GRACE` seconds, then cancels them, which cancels their calls."""
        if self.requests:
            _, late = await asyncio.wait(self.requests, timeout=GRACE)
            for request in late:
                request.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def response(status: int, text: str) -> bytes:
    """A complete response."""
    body = text.encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def serve(library: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT arrives."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with AsyncRecipes.open(library) as recipes:
        server = Server(recipes)
        listening = await asyncio.start_server(server.connected, "127.0.0.1", port)
        print(f"port {listening.sockets[0].getsockname()[1]}", flush=True)
        await stopping.wait()
        listening.close()  # no new connections
        await server.stop()
    print("stopped", flush=True)


def main() -> int:
    """The program."""
    if len(sys.argv) not in (2, 3):
        print("usage: web.py LIBRARY [PORT]", file=sys.stderr)
        return 2
    port = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    try:
        asyncio.run(serve(sys.argv[1], port))
    except (OSError, thalweg.Error) as error:
        print(f"web.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
