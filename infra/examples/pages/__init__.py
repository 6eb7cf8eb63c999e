"""Pages and their unique visitors."""
