"""The blog's views through the other door: many in one item."""
