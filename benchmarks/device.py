"""Transitions a second of roll-outs in torch that never wait for the host, on the processor or an accelerator.

    python benchmarks/device.py [--device cuda] [--n 1048576] [--steps 64] [--repeats 5] [--json ...]

The actions of a roll-out are drawn on the device, from each environment's stream. Before anything is timed, a roll-out
of few environments is compared with NumPy's, bit for bit. Three forms are measured:

1. `eager`: a kernel for each operation of the traced step (`envs/core/compiled/device.py`);
2. `graph`: a roll-out captured as a CUDA graph and replayed; on an accelerator alone;
3. `compile`: `torch.compile` of a step, then captured; on an accelerator, or where `--compile` asks for it.

On an accelerator every roll-out runs under `torch.cuda.set_sync_debug_mode("error")`, so that a step that waited for
the host would stop the benchmark, and seconds are wall seconds to the end of all kernels. On a processor they are the
processor's.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

import gymnasium as gym
import torch
from _stored import hardware, store

from theorybench.envs.core.compiled.device import TensorSteps

IDS = ("TreeMarkovChain", "ReasoningTree", "Parity")
#: Transitions a second that are asked of the tree on an accelerator.
GOAL = 1e9
#: Environments and steps that are compared with NumPy's.
CHECKED = (512, 12)


def made(id: str, n: int, device: str) -> TensorSteps:
    """Make the environments of a setting."""
    envs = gym.make_vec(f"TheoryBench/{id}-v0", num_envs=n, backend="torch", device=device)
    envs.reset(seed=0)
    return TensorSteps(envs.unwrapped.setting, envs.unwrapped.batch.columns)


def check(id: str, device: str) -> None:
    """Compare rewards, ends and observations with NumPy's, bit for bit."""
    n, count = CHECKED
    steps = made(id, n, device)
    envs = gym.make_vec(f"TheoryBench/{id}-v0", num_envs=n, compiled=False)
    envs.reset(seed=0)
    for _ in range(count):
        actions = steps.random_actions()
        found = steps.step(actions)
        observations, rewards, terminated, _, _ = envs.step(actions.cpu().numpy())
        same = (found.shown.observations.cpu().numpy() == observations).all() and (
            found.rewards.cpu().numpy() == rewards
        ).all()
        if not (same and (found.terminated.cpu().numpy() == terminated).all()):
            raise AssertionError(f"{id} on {device}: other trajectories than NumPy's")


def rolling(steps: TensorSteps, step: Callable[[], Any], count: int) -> Callable[[], None]:
    """Return a roll-out of so many steps that sums rewards on the device."""
    total = torch.zeros(1, dtype=torch.float64, device=steps.columns["steps"].device)

    def work() -> None:
        for _ in range(count):
            total.add_(step().rewards.sum())

    return work


def captured(work: Callable[[], None]) -> Callable[[], None]:
    """Capture work as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def forms(id: str, n: int, count: int, device: str, compiled: bool) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield roll-outs by the name of their form."""
    steps = made(id, n, device)
    work = rolling(steps, lambda: steps.step(steps.random_actions()), count)
    yield "eager", work
    cuda = torch.device(device).type == "cuda"
    if cuda:
        yield "graph", captured(work)
    if cuda or compiled:
        fresh = made(id, n, device)
        one = torch.compile(lambda: fresh.step(fresh.random_actions()), dynamic=False)
        fused = rolling(fresh, one, count)
        fused()
        yield "compile", captured(fused) if cuda else fused


def seconds(work: Callable[[], None], device: str) -> float:
    """Time a roll-out, in which nothing waits for the host."""
    if torch.device(device).type != "cuda":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    torch.cuda.set_sync_debug_mode("error")
    try:
        work()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print one row for each setting and form."""
    there = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if there else "cpu")
    parser.add_argument("--n", type=int, default=2**20 if there else 2**14, help="environments")
    parser.add_argument("--steps", type=int, default=64 if there else 8, help="of a roll-out")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="torch.compile on a processor, too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cuda = torch.device(options.device).type == "cuda"
    where = torch.cuda.get_device_name(options.device) if cuda else hardware()
    print(f"{where}, torch {torch.__version__}; {options.n:,} environments, roll-outs of {options.steps} steps")
    rows: list[dict[str, Any]] = []
    for id in IDS:
        check(id, options.device)
        for form, work in forms(id, options.n, options.steps, options.device, options.compile):
            work()  # makes what all steps share
            spent = statistics.median(seconds(work, options.device) for _ in range(options.repeats))
            rate = options.n * options.steps / spent
            print(f"{id:20}{form:10}{rate / 1e6:12.1f} M/s", flush=True)
            row = {"what": id, "form": form, "device": where, "n": options.n, "steps": options.steps, "rate": rate}
            rows.append({**row, "same_as_numpy": True, "waits": False if cuda else "not checked"})
    if cuda:
        best = max(row["rate"] for row in rows if row["what"] == IDS[0])
        print(f"goal, {GOAL / 1e6:,.0f} M/s of the tree: {'reached' if best >= GOAL else 'MISSED'}")
    store(options.json, rows)


if __name__ == "__main__":
    main()
