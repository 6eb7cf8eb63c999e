"""Quotas under everything that goes wrong: schedules of processes that share one, and what their calls cost."""
