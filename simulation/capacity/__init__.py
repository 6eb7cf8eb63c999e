"""Ceilings of `counters cost`, tried: the runtime in virtual time, on a table that throttles, under an offered load."""
