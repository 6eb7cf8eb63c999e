"""Benchmarks: each compares this project, within one run, with the known alternatives."""
