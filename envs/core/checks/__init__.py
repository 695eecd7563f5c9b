"""Checkers for authors of settings: what a Setting promises, tried on random episodes."""
