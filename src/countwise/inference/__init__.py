"""From a release to the posterior of the true counts. Sees published values only."""
