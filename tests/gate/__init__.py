"""Stands for AWS: what a deployment there would refuse, and what an emulator does not show."""
