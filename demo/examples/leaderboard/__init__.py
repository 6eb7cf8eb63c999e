"""A game's leaderboard: aggregates over aggregates, with retractions."""
