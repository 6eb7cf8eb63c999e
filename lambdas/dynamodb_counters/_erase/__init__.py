"""Erasing events: from the table, its chunks and quarantine."""
