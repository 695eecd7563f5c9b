"""Metrics of policies on the tree: by dynamic programming, by enumeration, by sampling."""
