"""Where to spend steps, samples and width so that features are learnt: training runs that nobody can see into.

An action spends a part of the budget, the run moves by the law of a theorem, and one noisy, rounded measurement comes
back; only the end is paid. Readings tell the worlds apart only after something irreversible has been spent, and the
step that looks best now is not the one that ends best. All settings are one machine, a hidden run (`run.py`), and
differ in tables alone, which they make from closed forms; every law is checked against a plain simulation of the
paper's algorithm on sampled data.
"""
