"""Networks as policy classes: what they share, and a file for each."""
