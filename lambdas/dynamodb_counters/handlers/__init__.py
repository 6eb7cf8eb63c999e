"""Lambda handlers: each reads its settings, calls the library and reports."""
