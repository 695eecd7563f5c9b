"""What the tests of this family have in common."""

import numpy as np
import pytest

from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View


@pytest.fixture(scope="session")
def random_policy(hashed):
    """random_policy(setting, depends_on, kind): a hash of what it sees, of sharpness `kind`, or a random "table"."""

    def make(setting, depends_on, kind, seed=0):
        if kind != "table":
            return hashed(setting, depends_on, kind)
        view = View.of(setting, {"state": "markov"}.get(depends_on, depends_on))
        return TablePolicy(view, np.random.default_rng(seed).dirichlet(np.ones(setting.num_actions), view.rows))

    return make


@pytest.fixture(scope="session")
def check_enumerated():
    """check_enumerated(oracle, policy, success, kl): exact answers are those of an enumeration, success by stages."""

    def check(oracle, policy, success, kl):
        stages = {f"stage_{stage}/success": value for stage, value in enumerate(success, 1)}
        wanted = stages | {"success": success[-1], "objective": success[-1], "kl": kl}
        assert oracle.evaluate(policy) == pytest.approx(wanted, abs=1e-12)  # and nothing is an estimate

    return check
