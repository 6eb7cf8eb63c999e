"""Traffic: deliveries with duplicates and retractions, and the runtime's responses to them."""
