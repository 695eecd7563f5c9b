"""Contextual bandits of alignment: comparisons, labels and rewards, a price of moving, games, choice at inference."""
