"""Contextual bandits of alignment: comparisons, a price of leaving the reference, reward models as teachers."""
