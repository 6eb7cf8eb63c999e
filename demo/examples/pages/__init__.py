"""Pages and their unique visitors, with retractions."""
