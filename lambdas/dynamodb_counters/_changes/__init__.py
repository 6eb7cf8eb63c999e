"""Changes of declarations: which definition counts after a deployment, and declarations and changes in words."""
