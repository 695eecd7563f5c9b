"""Tree-structured Markov chains."""
