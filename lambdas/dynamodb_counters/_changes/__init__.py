"""Changes of declarations: which definition counts after a deployment, and what to do about it."""
