"""Agents that do not ship: a process of their own that is kept apart, and the one that scores what it learns."""
