"""Easy before hard: settings with a ladder of sub-tasks."""
