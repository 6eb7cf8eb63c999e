"""The examples of docs/cli.md: real commands on a table with a past, and what they print."""
