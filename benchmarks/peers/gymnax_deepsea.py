"""gymnax: DeepSea of 8 by 8, jitted, vectorised by vmap, many steps in one scan."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
from contest import Contest, Side, drawn, sizes_up_to, tree_side

DISTRIBUTION = "gymnax"
#: Observations of 256 bytes.
MOST = 2**20


def contests(sizes: Sequence[int]) -> Iterator[Contest]:
    """Yield a contest of steps at every number of environments."""
    for n in sizes_up_to(sizes, MOST):
        step = (
            "transition, observation 8 x 8 float32, auto-reset; actions given; keys split for each, as its guide does"
        )
        sides = (
            Side("DeepSea, jit, vmap, scan", f"{step}; all steps in one call", scanned(n)),
            Side("DeepSea, jit, vmap", f"{step}; a call for each step", called(n)),
        )
        yield Contest("steps", "transitions", n, tree_side(n), sides)


def _made(n: int) -> tuple[Any, Any, Any, Any]:
    """Return how n environments step, their state, first observations and the actions."""
    env, parameters = gymnax.make("DeepSea-bsuite")
    observations, state = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(jax.random.key(0), n), parameters)
    several = jax.vmap(env.step, in_axes=(0, 0, 0, None))

    def step(key: Any, state: Any, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        key, own = jax.random.split(key)
        observations, state, reward, terminated, truncated, _ = several(
            jax.random.split(own, n), state, actions, parameters
        )
        return key, observations, state, reward, terminated | truncated

    return step, state, observations, jnp.asarray(drawn(n, 2), dtype=jnp.int32)


def scanned(n: int) -> Callable[[], int]:
    """Return work: one scan over steps, that sums rewards and keeps the last observations."""
    step, state, observations, actions = _made(n)

    @jax.jit
    def run(key: Any, state: Any, observations: Any, actions: Any) -> Any:
        def body(carry: Any, actions: Any) -> tuple[Any, None]:
            key, state, _, total = carry
            key, observations, state, reward, _ = step(key, state, actions)
            return (key, state, observations, total + reward), None

        carry = (key, state, observations, jnp.zeros(n))
        return jax.lax.scan(body, carry, actions)[0]

    held = [jax.random.key(1), state, observations]

    def work() -> int:
        held[:] = jax.block_until_ready(run(*held, actions))[:3]
        return int(actions.shape[0]) * n

    return work


def called(n: int) -> Callable[[], int]:
    """Return work: a call for each step, as where a policy outside jax acts."""
    step, state, _, actions = _made(n)
    one, rows = jax.jit(step), list(actions)
    held = [jax.random.key(1), state]

    def work() -> int:
        for row in rows:
            key, observations, state, reward, over = one(*held, row)
            held[:] = key, state
        jax.block_until_ready((observations, reward, over))
        return len(rows) * n

    return work
