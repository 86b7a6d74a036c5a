"""From a release to the posterior of the true counts. Sees published values only.

Owns the routes, the answers a posterior gives, and the statements it is asked about. Laws of
counts on a tree are `sumproduct`'s, what adjusted counts alone say is `withheld`'s. Must not
compile, print, or draw privacy noise.
"""
