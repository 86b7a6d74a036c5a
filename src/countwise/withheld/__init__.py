"""Likelihoods of counts whose noise was withheld: what adjusted counts alone say of the true ones.

Owns, for each adjustment, the probability of the published counts given the true ones: of a mode
as a sum over the cuts of an apportionment, of draws as a quadrature over their scale, of clipped
counts directly, of a total that was made with its parts by the law of pairs of sums; and the
sampler for what these do not reach. Where noisy counts are published none of it is needed.
The derivation, in two pages: `docs/explain/withheld-noise.md`.
"""
