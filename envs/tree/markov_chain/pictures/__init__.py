"""Pictures of the tree and its policies, and renderings of a running environment."""
