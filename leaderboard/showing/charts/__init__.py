"""Charts: what pages and pictures share, where names stand, interactive figures."""
