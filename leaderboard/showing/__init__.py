"""Terminal tables, pages and pictures."""
