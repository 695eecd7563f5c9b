"""Records of runs: their schema, their key, their store."""
