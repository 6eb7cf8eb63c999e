"""Counting a batch of stream records exactly once, and what is counted beside the stream."""
