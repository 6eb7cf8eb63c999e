"""Views of a blog."""
