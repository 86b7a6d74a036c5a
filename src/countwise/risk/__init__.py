"""Expected loss of mechanisms and adjustments.

Everything here works on public or made-up counts. Simulation takes a required `rng`; it never
touches the generator behind privacy noise, and releases can not import it.
"""
