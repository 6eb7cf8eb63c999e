"""Whether the counts are exact: drained, read back and compared with the truth."""
