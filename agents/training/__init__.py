"""The shared trainer, and what algorithms have in common."""
