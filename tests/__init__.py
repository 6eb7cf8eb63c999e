"""Tests of both packages, the demo and the harness that delivers stream records."""
