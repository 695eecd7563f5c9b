"""Threads that share a step: they are at hand at once while steps follow each other closely, and sleep otherwise.

A thread that sleeps is woken by the system, which takes as long as a step of ten thousand environments. So who has done
its part looks for a while whether there is more to do, in compiled code that leaves the interpreter to others; and the
function that does the own part gives the sign to begin, since nobody needs the interpreter from then on.
"""

import atexit
import contextlib
import itertools
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numba import njit

from theorybench.envs.core.compiled.fused.memory import announce, awaited
from theorybench.envs.core.compiled.program import NOBODY

#: How often a thread looks before it sleeps, about as many nanoseconds.
TRIES = 200_000


# Compiled at once, by the thread that imports this: not by a helper, whose failure nobody would see.
@njit("void(int64[::1], int64, int64)", nogil=True)
def _wait(done, ticket, tries):  # type: ignore[no-untyped-def]
    awaited(done, 0, ticket, tries)


@njit("void(int64[::1], int64[::1], int64, int64)", nogil=True)
def _report_and_wait(done, begun, ticket, tries):  # type: ignore[no-untyped-def]
    announce(done)
    awaited(begun, 0, ticket, tries)


class _Helper(threading.Thread):
    """A thread that does parts of calls.

    Args:
        begun: its first element counts the calls that have begun.

    Attributes:
        jobs: what to call, and with what; None ends the thread.
        results: what the calls return, or the errors that they raise.
        done: its first element is one more than the number of calls that are done.
    """

    def __init__(self, begun: np.ndarray) -> None:
        super().__init__(name="theorybench", daemon=True)
        self.begun, self.done = begun, np.zeros(1, np.int64)
        self.jobs: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self.results: SimpleQueue[Any] = SimpleQueue()

    def result(self) -> Any:
        """Wait for what a call returns, or the error that it raises."""
        while self.is_alive():
            with contextlib.suppress(Empty):
                return self.results.get(timeout=1.0)
        return RuntimeError("a thread that shares the steps of environments has ended: make the environments again")

    def run(self) -> None:
        """Do what is in the queue."""
        for ticket in itertools.count(1):
            _report_and_wait(self.done, self.begun, ticket, TRIES)
            job = self.jobs.get()  # sleeps where there is none yet
            if job is None:
                return
            try:
                result = job[0](*job[1])
            except BaseException as error:
                result = error
            del job  # its arrays are free to be used again
            self.results.put(result)


class Team:
    """This thread and `threads - 1` others.

    Attributes:
        awaited: whether one of the others was still at work when this thread had done its part of the last call.
    """

    def __init__(self, threads: int) -> None:
        self._busy, self._begun, self._calls, self.awaited = threading.Lock(), np.zeros(1, np.int64), 0, False
        self._helpers = [_Helper(self._begun) for _ in range(threads - 1)]
        for helper in self._helpers:
            helper.start()
        atexit.register(self._close)

    @property
    def complete(self) -> bool:
        """Whether all threads are there."""
        return all(helper.is_alive() for helper in self._helpers)

    def share(
        self, function: Callable[..., Any], parts: list[tuple[int, int]], arguments: tuple[Any, ...]
    ) -> list[Any]:
        """Call a function for each part, one in this thread and one in each of the others.

        Args:
            function: of start, stop, what it counts up when it begins, and more; compiled for such arguments.
            parts: start and stop, one for each thread.
            arguments: what more it takes.

        Returns:
            What it returns for each part.
        """
        if not self._busy.acquire(blocking=False):  # another thread's environments step at this moment
            return [function(*part, NOBODY, *arguments) for part in parts]
        try:
            self._calls += 1
            for helper, part in zip(self._helpers, parts[1:], strict=True):
                helper.jobs.put((function, (*part, NOBODY, *arguments)))
            results: list[Any] = []
            try:
                results.append(function(*parts[0], self._begun, *arguments))
            except BaseException as error:
                results.append(error)
            self.awaited = any(helper.done[0] <= self._calls for helper in self._helpers)
            for helper in self._helpers:
                _wait(helper.done, self._calls + 1, TRIES)
                results.append(helper.result())
        finally:
            self._busy.release()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def _close(self) -> None:
        """Let the others end before the interpreter does."""
        for helper in self._helpers:
            helper.jobs.put(None)
            helper.join(1.0)


_TEAMS: dict[tuple[int, int], Team] = {}  # by process, since threads do not survive a fork, and size


def team(threads: int) -> Team:
    """Return this process's threads."""
    key = os.getpid(), threads
    if key not in _TEAMS or not _TEAMS[key].complete:
        _TEAMS[key] = Team(threads)
    return _TEAMS[key]
