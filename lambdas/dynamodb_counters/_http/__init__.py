"""The two HTTP APIs: requests in, responses out."""
