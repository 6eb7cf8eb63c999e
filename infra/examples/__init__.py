"""Example stacks. Their declarations stand apart from them, for whoever writes and reads the table."""
