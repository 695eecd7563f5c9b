"""The settings, their exact oracles and the papers' claims."""

if __name__ == "envs":
    raise ImportError("import theorybench.envs, not envs: this folder is the source of a sub-package of theorybench")
