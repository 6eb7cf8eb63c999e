"""Writers, deliveries and faults interleaved by a seed, and the counts compared with the oracle."""
