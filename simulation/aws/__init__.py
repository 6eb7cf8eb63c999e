"""AWS's rules that several simulators follow: docs/engines.md has them all."""
