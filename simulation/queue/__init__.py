"""A queue, the Lambda service that polls it, and a table without enough write units, in virtual time."""
