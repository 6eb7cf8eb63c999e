"""The commands of ``counters``: a module each, named as it is typed, or beside the command it belongs to."""
