"""Where it runs: the example stacks in an emulator."""
