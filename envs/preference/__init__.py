"""Contextual bandits of alignment: learning from comparisons, labels and reward models, games, and best-of-N."""
