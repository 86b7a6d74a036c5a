"""What a noisy count says of a count that scatters about a mean as a gamma-Poisson law.

The prior of a count x is (1 - w)·NB(x; mean μ, shape r) + w/((x+1)(x+2)): the diffuse part, of no
scale, is what keeps counts possible that the fitted law would call impossible.
"""

from math import lgamma, log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled


@compiled
def scattered(
    noisy: IntArray, means: FloatArray, shape: float, diffuse: float, noise: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean, posterior variance and log-likelihood of every count.

    `noise` has the probabilities of noise 0, 1, … down to where they are negligible; noise is
    symmetric. A noisy count far below 0 is taken as the count 0 seen with the last of them.
    """
    found, spread, logs = np.empty((3, noisy.size))
    reach = noise.size - 1
    for i in range(noisy.size):
        y, mu = noisy[i], means[i]
        low, high = max(0, y - reach), max(y + reach, 0)
        rise, fall = log(mu / (mu + shape)), shape * log(shape / (mu + shape))
        term = lgamma(low + shape) - lgamma(shape) - lgamma(low + 1.0) + low * rise + fall
        total = first = second = 0.0
        for x in range(low, high + 1):
            prior = (1.0 - diffuse) * np.exp(term) + diffuse / ((x + 1.0) * (x + 2.0))
            weight = prior * noise[min(abs(y - x), reach)]
            total += weight
            first += weight * (x - low)
            second += weight * (x - low) ** 2
            term += log((x + shape) / (x + 1.0)) + rise
        mean = first / total
        found[i] = low + mean
        spread[i] = max(second / total - mean**2, 0.0)
        logs[i] = log(total)
    return found, spread, logs
