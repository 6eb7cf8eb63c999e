"""The queue's consumer: what becomes of a message."""
