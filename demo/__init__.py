"""Real deployments of the example stacks on this machine: deploy, send traffic, check every count."""
