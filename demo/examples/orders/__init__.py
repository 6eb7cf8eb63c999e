"""Orders in a table of other code, counted by its stream."""
