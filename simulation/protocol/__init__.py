"""The commit protocol as a model: every interleaving of a small configuration."""
