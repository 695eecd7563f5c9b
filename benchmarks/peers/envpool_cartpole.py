"""envpool: CartPole in C++, one thread, all environments in each step."""

from collections.abc import Iterator, Sequence

import envpool
import numpy as np
from contest import Contest, Side, drawn, sizes_up_to, stepping, tree_side

DISTRIBUTION = "envpool"
#: It holds an object for each environment; a batch of more takes minutes to begin.
MOST = 2**16


def contests(sizes: Sequence[int]) -> Iterator[Contest]:
    """Yield a contest of steps at every number of environments."""
    for n in sizes_up_to(sizes, MOST):
        envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=n, num_threads=1, seed=0)
        envs.reset()
        step = "step() of its Gymnasium interface, synchronous: observation of 4 float32, auto-reset"
        side = Side("CartPole, C++, one thread", step, stepping(envs.step, drawn(n, 2).astype(np.int32)))
        yield Contest("steps", "transitions", n, tree_side(n), (side,))
        envs.close()
