"""Tests of the service from Python. The variable LIBRARY has the path of the library."""

import asyncio
import os
import unittest

from my_org_my_service import AsyncMyService, MyService, MyServiceErrorEmptyName

LIBRARY = os.environ["LIBRARY"]


class Test(unittest.TestCase):
    """Calls, errors and streams."""

    def test_greet_numbers_the_greetings(self) -> None:
        """A client has an instance of the service of its own."""
        with MyService.open(LIBRARY) as client:
            numbers = [client.greet(name).number for name in ("Ada", "Grace")]
        self.assertEqual(numbers, [1, 2])

    def test_greet_refuses_an_empty_name(self) -> None:
        """The errors of the service are exceptions."""
        with (
            MyService.open(LIBRARY) as client,
            self.assertRaises(MyServiceErrorEmptyName),
        ):
            client.greet("")

    def test_greet_all_streams_one_greeting_per_name(self) -> None:
        """A stream is an iterator, on asyncio an async iterator."""

        async def texts() -> list[str]:
            async with AsyncMyService.open(LIBRARY) as client:
                return [
                    greeting.text
                    async for greeting in await client.greet_all(["Ada", "Grace"])
                ]

        self.assertEqual(asyncio.run(texts()), ["Hello, Ada!", "Hello, Grace!"])


if __name__ == "__main__":
    unittest.main()
