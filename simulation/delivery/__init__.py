"""The event source mapping between a stream and a function: order, batches, retries, bisect, windows, expiry."""
