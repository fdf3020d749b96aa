#!/usr/bin/env python3
"""Calls the service from Python: hello.py LIBRARY. It prints the same lines as the hosts in Rust and C.

Its package `thalweg` must be installed; `thalweg_hello` is the generated one beside it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated" / "python"))

import thalweg
from thalweg_hello import Hello, HelloErrorNoName, Person, Tone


def show(library: str) -> None:
    """Calls every function of the service."""
    ada, grace = Person("Ada", 36), Person("Grace", None)
    with Hello.open(library) as client:
        print(client.greet(ada, Tone.FRIENDLY))
        print(client.greet(grace, Tone.FORMAL))
        try:
            client.greet(Person("", None), Tone.FORMAL)
        except HelloErrorNoName:
            print("refused: no name")
        with client.guests([ada, grace]) as guests:
            print(f"{guests.count()} guests")
            with guests.arrive() as arriving:
                for guest in arriving:
                    age = "" if guest.age is None else f", {guest.age}"
                    print(f"{guest.name} arrives{age}")
            for greeting in client.greet_all(guests):
                print(greeting)
        print(f"greeted {client.greeted()}")


def main() -> int:
    """The program."""
    if len(sys.argv) != 2:
        print("usage: hello.py LIBRARY", file=sys.stderr)
        return 2
    try:
        show(sys.argv[1])
    except (OSError, thalweg.Error) as error:
        print(f"hello.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
