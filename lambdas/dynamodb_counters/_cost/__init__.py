"""Cost: units per event by stage, for this design and the known ones, and the bill of a month. Pure."""
