"""How an event or a number gets into the table: accept, record once, increment, retract, reset."""
