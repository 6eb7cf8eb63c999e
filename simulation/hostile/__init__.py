"""Strangers at every door: seeded requests that are made to break it, and bodies that are made to cost it time."""
