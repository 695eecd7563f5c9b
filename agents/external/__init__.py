"""External libraries as agents: stable-baselines3 and TRL."""
