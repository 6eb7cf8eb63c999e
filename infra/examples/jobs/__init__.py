"""Jobs of customers."""
