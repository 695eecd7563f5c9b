"""What a model reads, remembers and attends to: which lengths, which order, which batch, which fact, how sharply, when.

Somebody has a budget, and what helps costs before it helps: a longer context must be kept open while it is still empty,
a sharper look shows nothing by itself, every fact that is written down blurs the others. All that is known so far
stands on a board of integers, which is all that an agent sees; what is true stays hidden, and is read in noisy bits at
a price. Each setting is a finite problem (`theorybench.envs.core.finite`) whose nodes are its boards, so that every
policy is a function of the board and its value, the optimum and what looking one step ahead earns are exact.
"""
