#!/usr/bin/env python3
"""Searches a directory tree for plain text, from Python.

Its package `thalweg` must be installed; `thalweg_search` is the generated one beside it.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated" / "python"))

from thalweg_search import (
    AsyncSearch,
    Match,
    MatchView,
    Options,
    Search,
    SearchError,
)

# Hidden files too, ignore files not obeyed, every file looked at.
OPTIONS = Options(
    fixed=True, ignore_case=False, hidden=True, ignore_files=False, globs=[]
)


class Found:
    """The matches that a search has found so far."""

    def __init__(self) -> None:
        self.matches = 0
        self.lines_sum = 0
        self.began = time.monotonic_ns()
        self.first = 0

    def take(self, batch: Iterable[MatchView]) -> None:
        """Counts a batch of views."""
        if not self.matches:
            self.first = time.monotonic_ns()
        for match in batch:
            self.matches += 1
            self.lines_sum += match.line

    def take_one(self, match: Match) -> None:
        """Counts an object."""
        if not self.matches:
            self.first = time.monotonic_ns()
        self.matches += 1
        self.lines_sum += match.line

    def report(self) -> None:
        """One line for a program to read."""
        ended = time.monotonic_ns()
        line = {
            "host": "Python",
            "matches": self.matches,
            "lines_sum": self.lines_sum,
            "first_match_ns": (self.first or ended) - self.began,
            "total_ns": ended - self.began,
        }
        print(json.dumps(line))


def print_match(match: Match) -> None:
    """A line as `grep -rn` prints it; where text was not UTF-8, its own bytes."""
    path = match.path_bytes or match.path.encode()
    text = match.text.encode() if match.text_bytes is None else match.text_bytes
    sys.stdout.buffer.write(b"%b:%d:%b\n" % (path, match.line, text))


def search(arguments: argparse.Namespace, on_object: Callable[[Match], None]) -> Found:
    """Streams the matches to sync code."""
    with Search.open(arguments.library) as service:
        found = Found()
        with (
            service.query(arguments.pattern, arguments.directory, OPTIONS) as query,
            service.matches(query) as matches,
        ):
            if arguments.objects:
                for match in matches:
                    found.take_one(match)
                    on_object(match)
            else:
                for batch in matches.batches():
                    found.take(batch)
        return found


async def search_async(
    arguments: argparse.Namespace, on_object: Callable[[Match], None]
) -> Found:
    """Streams the matches to asyncio."""
    async with AsyncSearch.open(arguments.library) as service:
        found = Found()
        pattern, directory = arguments.pattern, arguments.directory
        async with (
            await service.query(pattern, directory, OPTIONS) as query,
            await service.matches(query) as matches,
        ):
            if arguments.objects:
                async for match in matches:
                    found.take_one(match)
                    on_object(match)
            else:
                async for batch in matches.batches():
                    found.take(batch)
        return found


def count(arguments: argparse.Namespace) -> int:
    """Counted by the service. `count` takes a regular expression; `escape` makes one."""
    with Search.open(arguments.library) as service:
        return service.count(service.escape(arguments.pattern), arguments.directory)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="the service's library")
    parser.add_argument("pattern", help="plain text")
    parser.add_argument("directory", help="where to search")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--json", action="store_true", help="how many, and how long it took (default)"
    )
    what.add_argument("--print", action="store_true", help="each line that matches")
    what.add_argument(
        "--count", action="store_true", help="how many, counted by the service"
    )
    parser.add_argument(
        "--async", action="store_true", dest="use_asyncio", help="on asyncio"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--views", action="store_true", help="read records in place (default)"
    )
    how.add_argument("--objects", action="store_true", help="make an object of each")
    arguments = parser.parse_args()
    # What is printed is read whole.
    arguments.objects = arguments.objects or arguments.print
    return arguments


def main() -> int:
    """Searches; gives the exit status."""
    arguments = parse()
    on_object = print_match if arguments.print else lambda match: None
    try:
        if arguments.count:
            print(count(arguments))
            return 0
        if arguments.use_asyncio:
            found = asyncio.run(search_async(arguments, on_object))
        else:
            found = search(arguments, on_object)
    except SearchError as error:
        print(f"search.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if arguments.print:
        sys.stdout.flush()
    else:
        found.report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
