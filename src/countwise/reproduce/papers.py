"""The five papers, their exhibits in the order of the text, and slips found in reading them."""

from countwise.reproduce import (
    balmat2018_coefficients,
    balmat2018_posteriors,
    balmat2018_times,
    coleman2020,
    kerrigan2019,
    wang2020,
    wang2021_counts,
    wang2021_posteriors,
    wang2021_releases,
)
from countwise.reproduce.exhibits import Paper, Slip

WANG_2020 = Paper(
    key="wang2020",
    authors="Wang",
    year=2020,
    title="Differentially Private Counts with Additive Constraints (draft)",
    exhibits=wang2020.EXHIBITS,
    slips=(
        Slip(where="Definition 1", says="α-differentially private, with the factor exp(α)",
             right="ε and exp(ε); α = exp(-ε) is the parameter of the noise"),
        Slip(where="section 2.2", says="n = n + δ", right="n = N + δ"),
        Slip(where="section 2.2.2", says="the sum of three double geometric variables",
             right="of S, one a component"),
        Slip(where="Theorem 1", says="f_i/k_i for every component",
             right="0/0 for an empty one; it must be passed over"),
        Slip(where="section 4.1.2", says="most counts range from 0 to 50; the first 50 states",
             right="from 1 to 53; states 2 to 50 and the national total"),
        Slip(where="Table 2", says="its caption is that of Table 3",
             right="true counts of example 2"),
        Slip(where="section 4.1.2", says="one draw from Algorithm 4", right="Algorithm 3"),
        Slip(where="section 4.2", says="Table 5 and Table 6", right="Table 4 and Table 5"),
    ),
)  # fmt: skip
WANG_2021 = Paper(
    key="wang2021",
    authors="Wang & Reiter",
    year=2021,
    title="Post-processing Differentially Private Counts to Satisfy Additive Constraints",
    exhibits=wang2021_counts.EXHIBITS
    + wang2021_releases.EXHIBITS
    + wang2021_posteriors.EXHIBITS,
    slips=(
        Slip(where="section 2.2", says="any mode is sufficient for our purposes",
             right="modes are rarely unique after clipping, and posterior and bias depend on the "
             "choice; it must be published"),
        Slip(where="section 2.2, step 2", says="q = f/k for every component",
             right="0/0 for an empty one; it must be passed over"),
        Slip(where="section 3.2", says="θ is a ratio to the sum of the modes",
             right="not defined when no noisy count is positive; components then count as equal"),
        Slip(where="reference 12", says="1928", right="2012 (SIAM Journal on Computing)"),
        Slip(where="reference 13", says="2005", right="2003"),
    ),
)  # fmt: skip
BALMAT_2018 = Paper(
    key="balmat2018",
    authors="Balmat, Barrientos & Reiter",
    year=2018,
    title="Efficient Evaluation of Multinomial Probabilities in Differentially Private Synthetic "
    "Data Verification Servers",
    exhibits=balmat2018_posteriors.EXHIBITS
    + balmat2018_coefficients.EXHIBITS
    + balmat2018_times.EXHIBITS,
    slips=(
        Slip(where="equation 1", says="the law of S given p is normalised over S",
             right="this drops the factor p(noisy | p) from the joint law of S and p"),
        Slip(where="footnote 10, step 4", says="Laplace noise of rate ε",
             right="of scale 2/ε, as in the code: one person moves two counts by one each"),
        Slip(where="section 5.1, step 5", says="p starts from the observed counts",
             right="from the prior: unnoised counts may not enter"),
        Slip(where="sections 5.2 and 6.4", says="p <- rdirichlet(…) inside the iterated function",
             right="assigns a local variable, so p never moves; it must be updated"),
        Slip(where="section 5.2, lines 31 and 32", says="+ dslap on a line of its own",
             right="a statement without effect in R: the densities must be added on the same line"),
        Slip(where="section 6.1", says="row i is row i - k times (M - k + 1)/k",
             right="times (M - k + 1)/S_err; that is k only in the first row of a block, which its "
             "last row equals"),
        Slip(where="footnote 13", says="a second p from [1 - first, first]",
             right="from [0, 1 - first]; otherwise the third can be negative"),
        Slip(where="section 6.4, line 129", says="rows 1,001 through 4,000", right="through 5,000"),
        Slip(where="section 6.4, line 96", says="for (k in 2:M)",
             right="runs k = 2, 1 when M = 1; needs M > 1"),
    ),
)  # fmt: skip
KERRIGAN_2019 = Paper(
    key="kerrigan2019",
    authors="Kerrigan",
    year=2019,
    title="Estimating Noisy Histograms with Quality Guarantees",
    exhibits=kerrigan2019.EXHIBITS,
    slips=(
        Slip(where="section 1.1.2", says="density (ε/2)·exp(-ε|x|/Δ)",
             right="(ε/(2Δ))·exp(-ε|x|/Δ)"),
        Slip(where="section 1.1.2", says="Gaussian noise with variance σ > …",
             right="with standard deviation σ > …"),
        Slip(where="section 2.1.3", says="the objective compares with H",
             right="with the noisy histogram, as in section 3.2.1; H is not known"),
        Slip(where="section 3.2.1", says="the derivation cites equation 3.1, then 3.2",
             right="3.2, then 3.1; both hold for a structure fixed in advance, not for one chosen"),
        Slip(where="section 3.2.2", says="privacy parameters E ⊂ ℤ", right="E ⊂ ℝ"),
        Slip(where="sections 3.3 and 3.4", says="sampling of 3.2.1, integration of 3.2.2",
             right="3.2.2 and 3.2.3"),
    ),
)  # fmt: skip
COLEMAN_2020 = Paper(
    key="coleman2020",
    authors="Coleman",
    year=2020,
    title="Releasing Counts with Differential Privacy",
    exhibits=coleman2020.EXHIBITS,
    slips=(
        Slip(where="the proof", says="the derivative is negative everywhere",
             right="negative for x > 0, zero at x = 0; the conclusion stands"),
    ),
)  # fmt: skip

PAPERS = {
    each.key: each for each in (WANG_2020, WANG_2021, BALMAT_2018, KERRIGAN_2019, COLEMAN_2020)
}
