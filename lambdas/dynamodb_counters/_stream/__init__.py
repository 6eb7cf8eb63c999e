"""How a batch of stream records is counted exactly once: fold, quarantine, commit."""
