"""Whether a finding holds in confidential data: claims, partitions, fits, and the posterior.

Owns the second privacy boundary, `verify`: outcomes of partitions go in, noisy counts come out.
Everything that shapes a model comes from the request and the public schema, never from data.
"""
