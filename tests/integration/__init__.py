"""Tests that talk to an engine."""
