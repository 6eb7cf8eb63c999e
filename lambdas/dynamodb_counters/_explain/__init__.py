"""Why a number is what it is: the events that its group counts, and what differs."""
