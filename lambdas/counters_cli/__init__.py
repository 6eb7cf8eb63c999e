"""The command `counters`, for an operator: it never ships."""
