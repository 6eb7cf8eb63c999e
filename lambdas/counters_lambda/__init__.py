"""What Lambda runs: the counting, the doors over HTTP, and the handlers. It ships in the asset of each function."""
