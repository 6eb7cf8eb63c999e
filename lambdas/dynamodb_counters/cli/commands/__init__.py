"""The commands of ``counters``: a module each, or one for a few that belong together."""
