"""Memory that arrays give back stays with the process."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import numpy as np
from theorybench.agents.api.memory import keep_memory
keep_memory()
keep_memory()
np.ones(2**21)  # 16 MB
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(2**21)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other mallocs have limits of their own")
def test_arrays_find_the_memory_of_earlier_ones():
    found = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 100  # of 10 * 4,096 pages
