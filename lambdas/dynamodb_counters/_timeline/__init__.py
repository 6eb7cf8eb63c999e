"""Which buckets a span of time is: units, tiers, calendars, intervals. Pure."""
