"""Curriculum settings: tasks with stages, sub-tasks ordered from easy to hard."""
