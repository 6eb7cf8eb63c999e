"""Control: which declarations hold for which records."""
