"""Fold of a change of an item into counts: record, contribution, delta, update. Pure."""
