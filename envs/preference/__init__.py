"""Contextual-bandit preferences."""
