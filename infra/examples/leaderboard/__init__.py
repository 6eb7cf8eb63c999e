"""A game's leaderboard."""
