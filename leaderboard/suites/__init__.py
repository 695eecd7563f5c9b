"""Suites that ship, one TOML file each."""
