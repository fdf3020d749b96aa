"""A Python program that uses the service: host.py [LIBRARY].

Without LIBRARY it opens the library in the installed wheel.
"""

import sys

from my_org_my_service import MyService


def main() -> None:
    """Prints greetings."""
    with MyService.open(*sys.argv[1:2]) as client:
        greeting = client.greet("Ada")
        print(f"{greeting.number}: {greeting.text}")
        for greeting in client.greet_all(["Grace", "Barbara"]):
            print(f"{greeting.number}: {greeting.text}")


if __name__ == "__main__":
    main()
