"""The commit: how a batch is counted exactly once."""
