"""Statistical checks of random numbers, for mx.test_utils."""
import numpy


def gen_buckets_probs_with_ppf(ppf, nbuckets):
    """(ranges of equal probability by the quantile function ppf, their probabilities)."""
    edges = [ppf(i / float(nbuckets)) for i in range(nbuckets + 1)]
    return list(zip(edges[:-1], edges[1:])), [1.0 / nbuckets] * nbuckets


def _drawn(generator, nsamples):
    values = generator(nsamples)
    return numpy.asarray(values.asnumpy() if hasattr(values, "asnumpy") else values).ravel()


def mean_check(generator, mu, sigma, nsamples=1000000):
    """Whether the mean of many numbers is within three standard errors of mu."""
    return abs(_drawn(generator, nsamples).mean() - mu) < 3 * sigma / numpy.sqrt(nsamples)


def var_check(generator, sigma, nsamples=1000000):
    """Whether the variance of many numbers is within three standard errors of sigma²."""
    return abs(_drawn(generator, nsamples).var(ddof=1) - sigma**2) < 3 * numpy.sqrt(2.0 / (nsamples - 1)) * sigma**2


def chi_square_check(generator, buckets, probs, nsamples=1000000):
    """(the probability of the counts in the ranges or of the values, the counts, the expected counts) by the chi-square test."""
    from scipy import stats

    values = _drawn(generator, nsamples)
    if isinstance(buckets[0], (tuple, list)):
        found = numpy.array([((low <= values) & (values < high)).sum() for low, high in buckets])
    else:
        found = numpy.array([(values == bucket).sum() for bucket in buckets])
    expected = numpy.asarray(probs, dtype=float) * nsamples
    statistic = ((found - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(buckets) - 1), found, expected


def verify_generator(generator, buckets, probs, nsamples=1000000, nrepeat=5, success_rate=0.2, alpha=0.05):
    """The p-values of several chi-square tests; AssertionError if too few are above alpha."""
    tests = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    passed = sum(p > alpha for p, _, _ in tests)
    if passed < nrepeat * success_rate:
        raise AssertionError(f"Generator test fails, Chi-square p={[p for p, _, _ in tests]}, found={[f for _, f, _ in tests]}, expected={tests[0][2]}")
    return [p for p, _, _ in tests]
