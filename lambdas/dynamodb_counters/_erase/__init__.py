"""Erasing events: from the table, its chunks and quarantine, from queues and on-failure buckets."""
