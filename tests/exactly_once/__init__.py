"""Exactness under at-least-once delivery."""
