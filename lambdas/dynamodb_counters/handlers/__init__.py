"""Lambda entry points: each reads its environment, calls the runtime and reports metrics."""
