"""AWS's rules: the sentence each comes from, the switch of the simulators, and the guard against it."""
