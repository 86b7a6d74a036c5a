"""From a release to the posterior of the true counts. Sees published values only.

Owns evidence, priors, and the passing of messages on trees; every sum over whole numbers is
done by `kernels`. Must not compile, print, or draw privacy noise.
"""
