"""From a configuration to runs: the matrix, its workers, one run."""
