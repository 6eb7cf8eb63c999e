"""Measurements beside the tests: what designs cost, printed as tables."""
