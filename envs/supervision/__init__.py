"""Whose word to trust, and which data to buy: cheap sources that are wrong, and dear ones that are right.

Somebody has to learn from a weak teacher, from a log of past behaviour, or from a set of recorded variables. Each
purchase has a price and is answered by one reading; the last action commits, and what was bought is judged. Which
purchase is right follows from a theorem, and what people do by default (trust the most accurate teacher, fit the
residual, keep what correlates) is provably wrong. The judgements and the laws of the readings are exact, tabulated
once: each setting is a finite problem with hidden worlds (`theorybench.envs.core.finite`), so that the value of every
policy, the optimum and what one would earn who sees the world are exact.
"""
