"""What it costs: DynamoDB's published rules applied to the requests of a client."""
