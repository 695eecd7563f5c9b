"""The agent interface, budgets, and the training, loading and checking of agents."""
