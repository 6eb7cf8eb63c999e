"""Backfill: count what a table holds already, while its stream goes on; verify and repair what was counted.

A scan reads every item while writers go on. The log of changes shows what each item had contributed at one moment, the
cut. The sum of these contributions is the baseline; from the cut on, the aggregator counts as ever.
"""
