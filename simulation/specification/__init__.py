"""The specification in docs/spec: checked by TLC, and traces of the real handler checked against it."""
