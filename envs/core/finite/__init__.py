"""One base for finite decision problems with something hidden, declared by tables alone.

A world is hidden; an action changes what is known, and perhaps the world; a reading is drawn from a law that depends
on the world; what is done last is judged. With `Problem` (`problem.py`) an author writes down nodes, laws, prices and
pay-offs. `FiniteSetting` (`setting.py`) makes of it the dynamics, observations (a dialogue of actions and readings, or
a board), action masks, public policies and the view of tables. `DecisionGraph` (`graph.py`) lists what may have been
seen, step by step (`expansion.py`), with the posterior over worlds carried along. `FiniteOracle` (`oracle.py`) gives
from it the exact value of any policy, the optimum for one who does not see the world, the bound for one who does, and
what readings are worth. A new setting of this kind has a Setting with its parameters and its tables, and an oracle with
its documented outcomes. `ListedSetting` (`listed.py`) refuses parameters that give more rows than are listed.

`walks.py` is for every oracle, of this kind or not: the check of what a policy declares to depend on, the walk through
all prefixes or along samples, and standard errors.
"""
