"""docs/survive.html: schedules of the real aggregator under faults, recorded step by step and replayed in a browser."""
