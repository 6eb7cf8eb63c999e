"""Views of a blog, packed."""
