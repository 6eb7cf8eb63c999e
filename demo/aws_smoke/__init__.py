"""Checks on AWS what an emulator does not show: deploys a copy under a random name, uses it, removes all of it."""
