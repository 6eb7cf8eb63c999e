"""Orders in a table that another team runs, and their counts beside it."""
