"""Benchmarks: each compares, within one run, what we do with what else one would do."""
