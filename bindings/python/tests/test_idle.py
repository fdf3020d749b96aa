"""An idle process runs no thread of the package, so none takes the GIL."""

import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import asyncio, sys, threading, time
sys.path[:0] = {path!r}
from thalweg_conformance import AsyncConformance, Conformance
library = sys.argv[1]
service = Conformance.open(library)
for number in range(100):
    service.echo_u64(number)
assert len(list(service.count(0, 10_000))) == 10_000
stream = service.endless()
kept = next(stream.batches()).array()

def poll():
    while True:
        time.sleep(0.001)

if {polls}:
    threading.Thread(target=poll, daemon=True).start()

async def idle():
    async with AsyncConformance.open(library) as other:
        await asyncio.gather(*(other.echo_u64(number) for number in range(100)))
        reading = await other.endless()
        await anext(reading.batches(max=16))
        # Waits in the event loop, which also watches the port.
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(0, over.set)
        print("idle", flush=True)
        await over.wait()

asyncio.run(idle())
"""


def switches(process: int) -> dict[str, int]:
    """The number of context switches of each thread of the process."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        status = (task / "status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status if ":" in line)
        found[f"{task.name} {fields['Name'].strip()}"] = int(
            fields["voluntary_ctxt_switches"]
        ) + int(fields["nonvoluntary_ctxt_switches"])
    return found


def still(library: str, polls: bool, tries: int) -> bool:
    """Whether no thread of the idle program runs for a whole second.

    On a busy machine a thread can take long to fall asleep, so the check is repeated.
    """
    program = PROGRAM.format(path=sys.path, polls=polls)
    command = [sys.executable, "-c", program, library]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdin
        assert host.stdout
        assert host.stdout.readline() == "idle\n"
        found = False
        while tries > 0 and not found:
            before = switches(host.pid)
            assert any(" tw-" in name for name in before)
            time.sleep(1)
            found = switches(host.pid) == before
            tries -= 1
        host.stdin.write("\n")
        host.stdin.close()
        assert host.wait() == 0
    return found


def test_idle_process_runs_no_thread(conformance_library: str) -> None:
    assert still(conformance_library, polls=False, tries=60)


def test_polling_thread_is_detected(conformance_library: str) -> None:
    assert not still(conformance_library, polls=True, tries=2)
