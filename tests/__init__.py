"""Tests of both packages, the demo, the benchmarks and the simulation."""
