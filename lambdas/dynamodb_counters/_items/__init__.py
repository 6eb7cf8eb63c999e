"""How one item is written and read: keys, attributes, numbers, conditions. Pure."""
