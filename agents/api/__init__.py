"""What an agent is, what it may spend, and how it is trained, found and checked."""
