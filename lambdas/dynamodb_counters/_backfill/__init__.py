"""Backfill: count what a table holds already, while its stream goes on; verify and repair what was counted."""
