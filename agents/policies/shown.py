"""What agents are shown of a setting, by the policy class that they train; no torch is imported here."""

from collections.abc import Mapping
from typing import Any

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import LinearPolicy
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.views import VIEWS, shown_by_view

#: What an agent may be shown, the least first: the tokens of prompt and response, as any setting has them; a feature
#: map or a view that the setting defines, the same for all instances, which says what matters; a view that uses what
#: the instance hides or what the solver found; the oracle.
SEES = ("tokens", "structure", "secret", "privileged")
#: Policies that a setting chooses: by default one that uses nothing hidden; its own view even where that does.
AUTO, INFORMED = "auto", "informed"
#: The class by default where the setting's own table would tell what is hidden.
NETWORK = "mlp"


def resolve_policy(setting: Setting, policy: str) -> str:
    """Return the class that a policy stands for on a setting: "linear", a view, or the name of a network."""
    if policy not in (AUTO, INFORMED):
        return policy
    if setting.has_features:
        return "linear"
    hidden = setting.policy_view in setting.secret_views
    return NETWORK if hidden and policy == AUTO else setting.policy_view


def table_policy(setting: Setting, view: str) -> str:
    """Return what a table of a setting's own view is as a policy.

    Args:
        setting: the setting.
        view: the hyper-parameter of that name, `AUTO` or `INFORMED`.

    Raises:
        ParameterError: that view uses what is hidden, and `view` does not ask for it.
    """
    if view == AUTO and setting.policy_view in setting.secret_views:
        fix = f"The table of {setting.name} uses what is hidden; pass view='informed' to be ranked apart."
        raise ParameterError("view", view, "'informed' on this setting", fix)
    return INFORMED


def shown_by(setting: Setting, policy: str) -> str:
    """Return what a policy class is shown of a setting: "tokens", "structure" or "secret"; see `SEES`."""
    name = resolve_policy(setting, policy)
    return "structure" if name == "linear" else shown_by_view(setting, name)


def shown_to_policy(policy: Any, setting: Setting) -> str:
    """Return what a policy is shown as far as its class tells: "tokens" where it is no table and not linear."""
    if isinstance(policy, LinearPolicy):
        return "structure"
    held = getattr(policy, "view_parameters", None)
    name = held.get("name") if isinstance(held, Mapping) else getattr(policy, "view", None)
    return shown_by_view(setting, name) if isinstance(name, str) and name in VIEWS else "tokens"


def most_shown(*shown: str) -> str:
    """Return that of some of `SEES` which is most."""
    return max(shown, key=SEES.index)
