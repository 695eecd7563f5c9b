"""TheoryBench: the reinforcement-learning benchmark with the answer key."""

__version__ = "0.1.0"
