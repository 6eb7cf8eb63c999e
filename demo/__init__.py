"""Running the real deployment on this machine: an AWS emulator and the pinned CDK CLI, started and stopped together."""
