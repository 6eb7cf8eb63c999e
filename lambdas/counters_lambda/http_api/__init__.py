"""Requests over HTTP: which are valid, and how they are answered."""
