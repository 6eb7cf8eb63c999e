"""Run a CDK app on this machine: an AWS emulator, the CDK CLI, what changes, what is logged and counted."""
