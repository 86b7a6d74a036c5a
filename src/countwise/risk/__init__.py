"""Expected loss of mechanisms and adjustments.

Everything here works on public or made-up counts. Simulation takes a required `rng`; it never
touches the generator behind privacy noise, and releases can not import it.

To read in order: `tails` and `closed` (two bins exactly); `plane`, `pairs`, `triples` and
`integration`; `draws` and `simulation`; `loss` (one interface to the three); `claims`, `terms`,
`gap` and `certificate` (proofs), `search`; `mechanisms`; `advice`.
"""
