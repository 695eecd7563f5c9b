"""Fixtures of the core's tests: toy settings, and every registered id."""

from pathlib import Path
from types import ModuleType

import pytest

import theorybench as tb
from theorybench.envs.core.registry import load_module

TOYS = load_module(str(Path(__file__).with_name("toys.py")))


@pytest.fixture
def toys() -> ModuleType:
    """The module of toy settings."""
    return TOYS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `env_id` for every registered id, so that new settings are covered."""
    if "env_id" in metafunc.fixturenames:
        ids = [id for id in tb.list_envs() if id.startswith(("TheoryBench/", "Toy/"))]
        metafunc.parametrize("env_id", ids)
