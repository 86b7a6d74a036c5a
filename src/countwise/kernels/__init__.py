"""Arrays in, arrays out: the compiled inner loops.

The only room that imports Numba. Knows nothing of tables, plans, files or noise laws; every
function here has a plain twin or a brute force in the tests.
"""
