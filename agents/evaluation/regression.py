"""Two regressions for the values q of cells (row, action), of which only one is right.

With x_k = indicator of cell k - discount * sum over a of pi(a | next row) indicator of (next row, a) and reward y_k,
values solve E[y - x' q | cell] = 0. *Residual* regression minimises sum (y_k - x_k' q)^2, whose x_k holds the noise of
the next row: what the noise explains counts as value. *Two-stage* least squares first replaces x_k by its mean in the
cell (the cells are its instruments), which the noise averages out of: the log is taken as the process itself.
"""

import numpy as np

from theorybench.agents.evaluation.transitions import Tables, solve

#: Added to the diagonal of the normal equations of residual regression.
RIDGE = 1e-8


def two_stage(tables: Tables) -> np.ndarray:
    """Return the values of cells by two-stage least squares, float64 (C,): mean rewards, plus mean next values."""
    return solve(tables.shares @ tables.target, tables.means, tables.discount, tables.depth)


def residual(tables: Tables) -> np.ndarray:
    """Return the values of cells by least squares on single transitions, float64 (C,)."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    # Transitions of a cell that led to one place share their x: they are one, so many times. None follows the end.
    links, earned = tables.links.tocoo(), tables.earned.tocoo()
    here = sparse.csr_matrix((np.ones(links.nnz), (np.arange(links.nnz), links.row)), (links.nnz, len(tables.counts)))
    none = sparse.csr_matrix((1, len(tables.counts)))
    x = here - tables.discount * sparse.vstack([tables.target, none], format="csr")[links.col]
    normal = x.T @ sparse.diags_array(links.data) @ x + RIDGE * sparse.eye_array(len(tables.counts))
    solver = splu(normal.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    q = solver.solve(x.T @ earned.data)
    # Once more for what is left: the ridge then decides only what the log leaves open.
    return np.asarray(q + solver.solve(x.T @ (earned.data - links.data * (x @ q))))
