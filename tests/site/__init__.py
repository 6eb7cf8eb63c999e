"""The documentation as a site: every block runs, every link leads somewhere, nothing comes from a network."""
