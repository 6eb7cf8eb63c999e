"""Orders in a table that another team runs, and their counts in a table of their own."""
