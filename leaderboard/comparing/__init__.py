"""From records to a board: statistics, rankings, learning curves, ladders of difficulty."""
