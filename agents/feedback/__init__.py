"""Agents that learn from comparisons and from labels."""
