"""How wide a network should be and how large its steps, for a given compute, and what cheap pilot runs tell of it."""
