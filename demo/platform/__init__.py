"""Where it runs: an AWS emulator, the pinned CDK CLI, and the stacks deployed there."""
