"""Why a number is what it is: the events that make it, and what of it they do not show."""
