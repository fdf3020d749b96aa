"""The Python host program of `search_overhead`: `search_host.py (sync | asyncio) LIBRARY PATTERN DIR`.

A line `search TIMES` is that many searches one after another; the answer is the time of all of them
and what each of them found.
"""

import asyncio
import sys

from sample import answer, commands, perf_counter_ns, ready
from thalweg_search import AsyncQuery, AsyncSearch, Options, Query, Search

Found = tuple[int, int]
"""Matches, and the sum of their line numbers."""

BATCH = 256
"""Records in a batch."""

OPTIONS = Options(
    fixed=False, ignore_case=False, hidden=True, ignore_files=False, globs=[]
)
"""As the direct search has it."""


def search(service: Search, query: Query) -> Found:
    """Reads one search to its end."""
    matches = lines = 0
    for batch in service.matches(query).batches(BATCH):
        matches += len(batch)
        for match in batch:
            lines += match.line
    return matches, lines


async def async_search(service: AsyncSearch, query: AsyncQuery) -> Found:
    """The same on the running loop."""
    matches = lines = 0
    stream = await service.matches(query)
    async for batch in stream.batches(BATCH):
        matches += len(batch)
        for match in batch:
            lines += match.line
    return matches, lines


class Sample:
    """So many searches, which must all find the same."""

    def __init__(self) -> None:
        self.began = perf_counter_ns()
        self.found: Found | None = None

    def add(self, found: Found) -> None:
        """One more search has ended."""
        if self.found not in (None, found):
            sys.exit("two searches of the same files found different lines")
        self.found = found

    def answer(self) -> None:
        """Answers the line that asked for it."""
        spent = perf_counter_ns() - self.began
        matches, lines = self.found or (0, 0)
        answer({"ns": spent, "matches": matches, "lines": lines})


def sync_main(library: str, pattern: str, directory: str) -> None:
    """Serves standard input with the blocking client."""
    with (
        Search.open(library) as service,
        service.query(pattern, directory, OPTIONS) as query,
    ):
        ready()
        for _, (times,) in commands():
            sample = Sample()
            for _ in range(times):
                sample.add(search(service, query))
            sample.answer()


async def async_main(library: str, pattern: str, directory: str) -> None:
    """Serves standard input with the client on asyncio."""
    async with AsyncSearch.open(library) as service:
        async with await service.query(pattern, directory, OPTIONS) as query:
            ready()
            # Nothing else runs on this loop, so reading the next line may block it.
            for _, (times,) in commands():
                sample = Sample()
                for _ in range(times):
                    sample.add(await async_search(service, query))
                sample.answer()


def main() -> None:
    """See the module."""
    mode, library, pattern, directory = sys.argv[1:]
    if mode == "sync":
        sync_main(library, pattern, directory)
    else:
        asyncio.run(async_main(library, pattern, directory))


if __name__ == "__main__":
    main()
