"""What can go wrong with a store call, and invocations that stop before each one."""
