"""Quarantine: what could not be counted, and how it is counted later."""
