"""How results look to people."""
