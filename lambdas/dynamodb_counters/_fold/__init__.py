"""What a change of an item adds to which counts: record, contribution, delta, update. Pure."""
