"""The environments made from a Setting: single, vectorised, rendered, metered, and as language tasks."""
