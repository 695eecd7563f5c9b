"""Pictures of the tree, of its policies and of an environment while it runs."""
