"""The policy classes by name, and the hyper-parameters that select one.

A new class is an entry of `CATALOGUE`; the sizes of a network are also fields of `PolicyOptions`. Hyper-parameters of
agents, their pages and the tests of all classes follow from these.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from theorybench.agents.policies.mlp import MLPSoftmax
from theorybench.agents.policies.shown import AUTO, INFORMED, resolve_policy, shown_by
from theorybench.agents.policies.sizes import SHAPES, SIZES
from theorybench.agents.policies.softmax import LinearSoftmax, SoftmaxClass, TabularSoftmax
from theorybench.agents.policies.transformer import TransformerSoftmax
from theorybench.envs.core.policy import KINDS
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.validation import choice, integer
from theorybench.envs.core.views import VIEWS


def _language_model(setting: Setting, start: str, **options: Any) -> SoftmaxClass:
    from theorybench.agents.language.softmax import LanguageSoftmax  # transformers takes seconds to import

    return LanguageSoftmax(setting, start, **options)


class PolicyEntry(NamedTuple):
    """A policy class."""

    make: Callable[..., SoftmaxClass]  # (setting, start, sizes by name) -> the class
    sizes: tuple[str, ...] = ()  # names of the fields of `PolicyOptions` that it takes; none but networks have sizes


CATALOGUE = {
    **{view: PolicyEntry(partial(TabularSoftmax, view=view)) for view in VIEWS},
    "linear": PolicyEntry(LinearSoftmax),
    "mlp": PolicyEntry(MLPSoftmax, ("hidden_units", "hidden_layers")),
    "transformer": PolicyEntry(TransformerSoftmax, ("width", "layers", "heads")),
    **{shape: PolicyEntry(partial(_language_model, shape=shape), ("size",)) for shape in SHAPES},
}
#: Policy classes that are networks: their runs are trained one at a time.
NETWORKS = tuple(name for name, entry in CATALOGUE.items() if entry.sizes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Which policy class is trained, where training begins, and how large networks are: fields of agents."""

    policy: str = choice(
        AUTO,
        (AUTO, INFORMED, *CATALOGUE),
        "policy class; auto: linear where the setting has features, else a table of its own view, or an mlp where that "
        "view uses what is hidden; informed: that view; local, state: tables of these views, where a setting has them",
    )
    start: str = choice(
        "initial",
        KINDS,
        "the policy that training begins from; uniform: over legal actions",
        search=("initial", "uniform"),
    )
    hidden_units: int = integer(64, 1, 65_536, "mlp: width of the hidden layers", search=())
    hidden_layers: int = integer(1, 1, 64, "mlp: number of hidden layers", search=())
    width: int = integer(32, 1, 65_536, "transformer: numbers of each token, a multiple of the heads", search=())
    layers: int = integer(2, 1, 64, "transformer: number of layers", search=())
    heads: int = integer(4, 1, 1024, "transformer: heads of the attention in each layer", search=())
    size: str = choice("tiny", tuple(SIZES), "llama, qwen, gpt2: of the model, 50 thousand to 5 million weights")

    def build(self, setting: Setting) -> SoftmaxClass:
        """Return the policy class on a setting."""
        name = resolve_policy(setting, self.policy)
        entry = CATALOGUE.get(name) or PolicyEntry(partial(TabularSoftmax, view=name))
        return entry.make(setting, self.start, **{size: getattr(self, size) for size in entry.sizes})

    def sees(self, setting: Setting) -> str:
        """Return what the policy class is shown of a setting: "tokens", "structure" or "secret"."""
        return shown_by(setting, self.policy)

    def trains_network(self, setting: Setting) -> bool:
        """Return whether the policy class is a network on a setting."""
        return resolve_policy(setting, self.policy) in NETWORKS
