"""Recovery after a loss; never part of the Lambda asset."""
