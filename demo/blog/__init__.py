"""Views of a blog, generated or replayed from an access log."""
