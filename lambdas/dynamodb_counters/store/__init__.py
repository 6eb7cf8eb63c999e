"""Everything that talks to DynamoDB; nothing outside this folder does."""
