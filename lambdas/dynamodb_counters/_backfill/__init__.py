"""Backfill: count what a table holds already, beside the stream that goes on; verify and repair what was counted.

A scan reads every item while writers go on. The log of what changed meanwhile tells what each item had contributed at
one moment, the cut. Their sum is the baseline; from the cut on, the aggregator counts as ever.
"""
