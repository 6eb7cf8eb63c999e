"""DynamoDB in memory: boto3's client methods, expressions, streams and consumed capacity."""
