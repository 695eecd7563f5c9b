"""Run matrix, workers, record store, statistics, tables and pages."""

if __name__ == "leaderboard":
    raise ImportError(
        "import theorybench.leaderboard, not leaderboard: this folder is the source of a sub-package of theorybench"
    )
