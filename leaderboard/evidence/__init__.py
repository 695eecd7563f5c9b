"""Claims and studies: bound to their settings, measured, reported."""
