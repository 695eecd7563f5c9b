"""What the tests of all settings have in common: a lab with faults, in which claims are seen to fail."""

import dataclasses

import pytest


class FaultyLab:
    """A lab that does otherwise than it is asked, to break what a claim stands on.

    Args:
        lab: a sound one.
        parameters: of the setting, whatever a claim asks for.
        oracle: lab -> the oracle that it shows.
        agent: trained in place of the one that is asked for.
        hyperparameters: (lab, those that are asked for) -> those of the training.
        policy: (lab, policy, options) -> the policy that is simulated.
        options: (lab, options) -> those of the simulation.
        world: parameters of the setting in which episodes take place, unknown to the claim.
        rewards: (lab, episodes, options) -> what they earn, (E,).
    """

    def __init__(self, lab, parameters=None, oracle=None, agent=None, **faults):
        self.known, self.other_oracle, self.agent, self.faults = parameters or {}, oracle, agent, faults
        assert set(faults) <= {"hyperparameters", "policy", "options", "world", "rewards"}
        self.lab = lab.at(**self.known)
        self.setting, self.oracle = self.lab.setting, oracle(self.lab) if oracle else self.lab.oracle

    def at(self, **parameters):
        return FaultyLab(self.lab.at(**parameters), self.known, self.other_oracle, self.agent, **self.faults)

    def asked(self, name, value):
        """What a fault makes of what is asked for."""
        return self.faults[name](self.lab, value) if name in self.faults else value

    def train(self, agent, seeds, budget, **hyperparameters):
        return self.lab.train(self.agent or agent, seeds, budget, **self.asked("hyperparameters", hyperparameters))

    def trace(self, agent, seeds, budget, *, points, **hyperparameters):
        own = self.asked("hyperparameters", hyperparameters)
        return self.lab.trace(self.agent or agent, seeds, budget, points=points, **own)

    def simulate(self, policy, episodes, seed, **options):
        options = self.asked("options", options)
        if "policy" in self.faults:
            policy = self.faults["policy"](self.lab, policy, options)
        played = self.lab.at(**self.faults.get("world", {})).simulate(policy, episodes, seed, **options)
        if "rewards" in self.faults:
            played = dataclasses.replace(
                played, rewards=self.faults["rewards"](self.lab, played, options).astype(float)
            )
        return played


@pytest.fixture(scope="session")
def check_claim():
    """Check a claim of `theorybench.claims`: check(claim, fault=None, seed=0, **parameters of the setting).

    `fault` are arguments of a `FaultyLab`; None is the sound lab.
    """

    def check(claim, fault=None, seed=0, **parameters):
        setting = dataclasses.replace(claim.setting, **parameters)
        make_lab = claim.make_lab if fault is None else lambda setting: FaultyLab(claim.make_lab(setting), **fault)
        return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=seed)

    return check
