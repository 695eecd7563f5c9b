"""`python -m theorybench`."""

from theorybench.cli import main

if __name__ == "__main__":
    main()
