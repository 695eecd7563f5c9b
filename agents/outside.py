"""What outside libraries need around them: the global generators that they seed are put back."""

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import torch


@contextlib.contextmanager
def global_generators_restored() -> Iterator[None]:
    """Put the global generators of Python, NumPy and torch back at the end."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
