"""Watching sweeps: progress in the terminal, a state for `theorybench status`, curves for TensorBoard and W&B."""
