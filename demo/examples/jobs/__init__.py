"""Jobs of three customers."""
