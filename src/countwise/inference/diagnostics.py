"""How far chains of draws can be trusted: split R-hat and effective sample size.

Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, sections 2 and 3, without rank normalisation.
Arrays have one row a chain and one column a draw; further axes are quantities.
"""

import numpy as np

from countwise.arrays import FloatArray


def split_rhat(draws: FloatArray) -> FloatArray:
    """√(pooled over within-chain variance) of half chains; near 1 when the chains agree."""
    halves = _halves(draws)
    size = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = size * halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (size - 1) / size * within + between / size
    return np.where(within > 0, np.sqrt(pooled / np.where(within > 0, within, 1.0)), 1.0)


def effective_size(draws: FloatArray) -> FloatArray:
    """Number of independent draws with the same error of the mean.

    Autocorrelations are summed in pairs as long as the pairs are positive and falling (Geyer 1992).
    """
    halves = _halves(draws)
    chains, size = halves.shape[:2]
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :size].mean(axis=0) / size
    within = covariance[0] * size / (size - 1)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = within * (size - 1) / size + between
    safe = np.where(pooled > 0, pooled, 1.0)
    rho = 1.0 - (within - covariance) / safe
    rho[0] = 1.0
    pairs = rho[: size - size % 2].reshape(-1, 2, *rho.shape[1:]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.maximum(pairs, 0.0), axis=0) * positive
    tau = np.maximum(2.0 * falling.sum(axis=0) - 1.0, 1.0 / np.log10(chains * size + 10))
    return np.asarray(np.where(pooled > 0, chains * size / tau, float(chains * size)))


def _halves(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, half : 2 * half]]).astype(np.float64)
