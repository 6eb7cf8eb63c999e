"""Example stacks; the declarations of each are a module, for those who write and read its table."""
