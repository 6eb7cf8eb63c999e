"""What the HTTP APIs do: check and pack events, answer questions about counts. No I/O beyond the read library."""
