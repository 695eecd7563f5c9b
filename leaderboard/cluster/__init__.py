"""Sweeps on many machines: the jobs of a sweep are tasks of a Ray cluster."""
