"""The agent interface, budgets, and the training, loading and checking of agents."""

#: Entry points of this group name an agent, `name = "package.module:Class"`, or a package of agents,
#: `anything = "package"`: one module for each, whose name is the agent's.
GROUP = "theorybench.agents"
