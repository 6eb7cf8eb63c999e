"""Seeded schedules of backfills and redefinitions beside live traffic: python -m simulation.backfill."""
