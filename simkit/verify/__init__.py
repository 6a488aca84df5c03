"""Where a sampler meets a test: tally, law and plan to a verdict."""
