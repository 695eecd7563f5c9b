"""Processes as Linux shows them: who started whom, what they hold, and the end of one with all that it has started.

Other systems do not say: there `processes` knows of none, and what processes have started is ended by their group.
"""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

#: Bytes of a page of memory.
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: Rounds of ending what a process has started, in which it may go on starting more, and seconds between them.
ROUNDS, PAUSE = 1000, 0.005


class Process(NamedTuple):
    """What is known of a process."""

    parent: int  # its number
    group: int  # its process group
    resident: int  # bytes of memory; 0 for one that has ended and that its parent has not asked about


def processes() -> dict[int, Process]:
    """Return every process by its number; none where the system does not say (all but Linux)."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = path.read_text().rpartition(")")[2].split()  # from the third on: state, parent, group, ...
            found[int(path.parent.name)] = Process(int(fields[1]), int(fields[2]), int(fields[21]) * PAGE)
    return found


def started_by(root: int, known: dict[int, Process]) -> set[int]:
    """Return the processes that one has started, and that those have started, and so on."""
    children: dict[int, list[int]] = {}
    for number, process in known.items():
        children.setdefault(process.parent, []).append(number)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def held_together(numbers: set[int], known: dict[int, Process], limit: int) -> int:
    """Return the bytes that processes hold; what they share counts once, if that decides whether it is over a limit."""
    held = sum(known[number].resident for number in numbers)
    return held if held <= limit else sum(_share(number, known[number].resident) for number in numbers)


def _share(number: int, resident: int) -> int:
    """Return the bytes that a process holds, of memory that several share its part: slow, a millisecond."""
    with contextlib.suppress(OSError, StopIteration, ValueError, IndexError):
        lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return resident


def adopt_orphans() -> bool:
    """Become the parent of what this process has started when it loses its own (Linux), so that none gets away."""
    return _prctl(36, 1)


def end_with_parent() -> bool:
    """Let the system kill this process when its parent ends (Linux)."""
    return _prctl(1, signal.SIGKILL)


def end_started(root: int) -> None:
    """Kill all that a process has started; it is the parent of orphans, and starts no more itself."""
    for _ in range(ROUNDS):
        known = processes()
        alive = [number for number in started_by(root, known) if known[number].resident]
        if not alive:
            return
        for number in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(PAUSE)


def end_family(root: int) -> None:
    """Kill a process, its group and all that it has started. It is stopped first, so that orphans still go to it."""
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.kill(root, signal.SIGSTOP)
        end_started(root)
    end_group(root)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(root, getattr(signal, "SIGKILL", signal.SIGTERM))


def end_group(number: int) -> None:
    """Kill a process group, where systems have them."""
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(number, signal.SIGKILL)


def cpu_seconds(number: int) -> float | None:
    """Return the processor seconds of a running process; None where the system does not say (all but Linux)."""
    try:
        return time.clock_gettime((~number << 3) | 2)  # the clock that clock_getcpuclockid(3) names
    except (OSError, AttributeError, OverflowError):
        return None


def cause_of_end(exitcode: int | None) -> str:
    """Say why the process of a run ended."""
    if exitcode is not None and exitcode < 0:
        return f"the process of the run died of {signal.Signals(-exitcode).name}"
    return f"the agent ended the process of the run with exit code {exitcode}"


def _prctl(option: int, value: int) -> bool:
    """Set an option of this process; return whether the system has it."""
    try:
        return ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0
    except (OSError, AttributeError, TypeError):  # TypeError: Windows
        return False
