"""Slow reference implementation of every sampler, from the definitions in the papers."""

from __future__ import annotations

import math

Logits = dict[int, float]  # token id -> logit; what is not in it was cut


def softmax(logits: Logits) -> dict[int, float]:
    top = max(logits.values())
    weights = {t: math.exp(x - top) for t, x in logits.items()}
    total = math.fsum(weights.values())
    return {t: w / total for t, w in weights.items()}


def by_probability(logits: Logits) -> list[int]:
    return sorted(logits, key=lambda t: (-logits[t], t))


def temperature(logits: Logits, value: float) -> Logits:
    """p_i = exp(l_i / T) / sum of exp(l_j / T)."""
    return {t: x / value for t, x in logits.items()}


def top_k(logits: Logits, k: int) -> Logits:
    return {t: logits[t] for t in by_probability(logits)[:k]}


def top_p(logits: Logits, p: float) -> Logits:
    """Holtzman et al. 2020: the smallest set V with sum of P(x in V) >= p."""
    share, kept, mass = softmax(logits), {}, 0.0
    for t in by_probability(logits):
        kept[t] = logits[t]
        mass += share[t]
        if mass >= p:
            break
    return kept


def min_p(logits: Logits, p: float) -> Logits:
    """Nguyen et al. 2024: P(x) >= p * max P."""
    share = softmax(logits)
    return {t: x for t, x in logits.items() if share[t] >= p * max(share.values())}


def typical_p(logits: Logits, tau: float) -> Logits:
    """Meister et al. 2023: the smallest set by | H(P) + log P(x) | whose mass is at least tau."""
    share = softmax(logits)
    entropy = -math.fsum(p * math.log(p) for p in share.values())
    kept, mass = {}, 0.0
    for t in sorted(logits, key=lambda t: (abs(entropy + math.log(share[t])), t)):
        kept[t] = logits[t]
        mass += share[t]
        if mass >= tau:
            break
    return kept


def top_a(logits: Logits, a: float) -> Logits:
    """RWKV-LM: P(x) >= a * (max P)^2."""
    share = softmax(logits)
    return {t: x for t, x in logits.items() if share[t] >= a * max(share.values()) ** 2}


def tail_free(logits: Logits, z: float) -> Logits:
    """Phenix and Egan 2019: |second differences| of sorted P, normalised and cumulated; the tail begins after z."""
    order = by_probability(logits)
    if len(order) < 3:
        return logits
    share = softmax(logits)
    p = [share[t] for t in order]
    first = [p[i + 1] - p[i] for i in range(len(p) - 1)]
    second = [abs(first[i + 1] - first[i]) for i in range(len(first) - 1)]
    total, cumulated, kept = sum(second), 0.0, [order[0]]
    for i, bend in enumerate(second):
        cumulated += bend / total
        if cumulated > z:
            break
        kept.append(order[i + 1])
    return {t: logits[t] for t in kept}


def top_n_sigma(logits: Logits, n: float) -> Logits:
    """Tang et al. 2024: l >= max l - n * sigma, sigma the standard deviation of the logits."""
    values = list(logits.values())
    mean = sum(values) / len(values)
    sigma = math.sqrt(sum((x - mean) ** 2 for x in values) / len(values))
    return {t: x for t, x in logits.items() if x >= max(values) - n * sigma}


def xtc(logits: Logits, threshold: float) -> Logits:
    """Weidmann 2024: of the tokens with P >= threshold all but the least probable are removed."""
    share = softmax(logits)
    above = [t for t in by_probability(logits) if share[t] >= threshold]
    return {t: x for t, x in logits.items() if t not in above[:-1]}


def repetition_penalty(logits: Logits, tokens: list[int], theta: float) -> Logits:
    """Keskar et al. 2019, with the sign taken care of as in its code: l / theta, or l * theta below 0."""
    return {t: (x / theta if x > 0 else x * theta) if t in tokens else x for t, x in logits.items()}


def presence_penalty(logits: Logits, tokens: list[int], alpha: float) -> Logits:
    return {t: x - alpha * (t in tokens) for t, x in logits.items()}


def frequency_penalty(logits: Logits, tokens: list[int], alpha: float) -> Logits:
    return {t: x - alpha * tokens.count(t) for t, x in logits.items()}


def dry(
    logits: Logits, tokens: list[int], multiplier: float, base: float, allowed: int, breakers: tuple[int, ...]
) -> Logits:
    """Weidmann 2024: for a token, the longest suffix of the text that precedes an earlier occurrence of that token."""
    punished = dict(logits)
    for t in logits:
        longest = 0
        for at, seen in enumerate(tokens):
            if seen != t or t in breakers:
                continue
            n = 0
            while n < at and tokens[at - 1 - n] == tokens[len(tokens) - 1 - n] and tokens[at - 1 - n] not in breakers:
                n += 1
            longest = max(longest, n)
        if longest >= allowed:
            punished[t] -= multiplier * base ** (longest - allowed)
    return punished


def mirostat_2(logits: Logits, mu: float) -> Logits:
    """Basu et al. 2021, the second algorithm: what surprises by more than mu bits is cut; one token stays."""
    share = softmax(logits)
    kept = {t: x for t, x in logits.items() if -math.log2(share[t]) <= mu}
    return kept or top_k(logits, 1)


def mirostat_1(logits: Logits, mu: float, m: int = 100) -> Logits:
    """Basu et al. 2021, algorithm 1: s by least squares over the m most probable, then k."""
    share = softmax(logits)
    p = [share[t] for t in by_probability(logits)][:m]
    steps = [math.log((i + 2) / (i + 1)) for i in range(len(p) - 1)]
    falls = [math.log(p[i] / p[i + 1]) for i in range(len(p) - 1)]
    s = sum(t * b for t, b in zip(steps, falls, strict=True)) / sum(t * t for t in steps)
    epsilon = s - 1
    k = (epsilon * 2**mu / (1 - len(logits) ** -epsilon)) ** (1 / s)
    return top_k(logits, min(len(logits), max(1, round(k))))
