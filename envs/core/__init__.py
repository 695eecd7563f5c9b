"""The foundation: Setting, Oracle, Claim, and the environments made from a Setting."""
