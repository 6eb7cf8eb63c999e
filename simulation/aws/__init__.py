"""AWS's rules that several simulators follow: docs/aws-rules.md has them all."""
