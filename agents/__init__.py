"""What an agent is: Agent, Policy, Budget, roll-outs, the trainer and adapters."""

if __name__ == "agents":
    raise ImportError("import theorybench.agents, not agents: this folder is the source of a sub-package of theorybench")
