"""How counts are read: groups, rankings, windows."""
