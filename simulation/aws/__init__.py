"""AWS's rules, one per module: the sentence it comes from, the switch of the simulators, and the guard against it."""
