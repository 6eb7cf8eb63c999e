"""``counters``: the command that looks after a table. See docs/cli.md."""
