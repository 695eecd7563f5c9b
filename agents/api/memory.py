"""Memory that arrays give back and take again."""

import functools

import numpy as np


@functools.cache
def keep_memory() -> None:
    """Let up to 64 MB that arrays give back stay with the process, where each later array finds them again.

    By itself glibc hands the memory of arrays of more than 128 KB to the system and asks for it again, a page at a
    time, which takes as long as a pass over them. Both limits rise to the largest block that was freed, of at most
    32 MB: here is one that nobody writes to. Other systems do nothing.
    """
    np.empty(2**25 - 2**16, np.uint8)
