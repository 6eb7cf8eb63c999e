"""Faults of store calls, and invocations that stop before each call."""
