"""Specs: what is counted, and in plain Python what the counts must be."""
