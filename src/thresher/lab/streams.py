"""Random numbers that depend only on a seed, a repetition and a purpose.

xoshiro256++ seeded through splitmix64. Each repetition has separate streams for its instance, its rewards and its
delays, so results do not depend on the number of threads, and all policies play the same instances. Written for numba:
64-bit words only, because numba turns a mix of signed and unsigned words into floats.
"""

import math

import numpy as np

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]

U11, U17, U19, U23, U27, U30, U31, U41, U45 = (np.uint64(bits) for bits in (11, 17, 19, 23, 27, 30, 31, 41, 45))
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)

INSTANCE, REWARDS, DELAYS, PULLS = 0, 1, 2, 3  # and more: a purpose for each pull


def rotated_stream_word(word: np.uint64, left: np.uint64, right: np.uint64) -> np.uint64:
    """The word rotated left; ``left + right`` is 64."""
    return (word << left) | (word >> right)


def scrambled_stream_word(word: np.uint64) -> np.uint64:
    """splitmix64's finaliser: every bit of the word affects every bit of the result."""
    word = (word ^ (word >> U30)) * MIX1
    word = (word ^ (word >> U27)) * MIX2
    return word ^ (word >> U31)


def start_stream(state: Words, seed: int, repetition: int, purpose: int) -> None:
    """Set the four words of a stream from its seed, repetition and purpose."""
    word = scrambled_stream_word(np.uint64(seed) + GOLDEN)
    word = scrambled_stream_word(word ^ (np.uint64(repetition) * GOLDEN + MIX1))
    word = scrambled_stream_word(word ^ (np.uint64(purpose) * GOLDEN + MIX2))
    for index in range(4):
        word = word + GOLDEN
        state[index] = scrambled_stream_word(word)


def stream_fraction(state: Words) -> float:
    """The next number of the stream, uniform on [0, 1), in steps of 2**-53."""
    first, second, third, fourth = state[0], state[1], state[2], state[3]
    word = rotated_stream_word(first + fourth, U23, U41) + first
    third ^= first
    fourth ^= second
    state[1] = second ^ third
    state[0] = first ^ fourth
    state[2] = third ^ (second << U17)
    state[3] = rotated_stream_word(fourth, U45, U19)
    return float(np.int64(word >> U11)) * 2.0**-53


def stream_exponential(state: Words) -> float:
    """An exponential number of mean 1."""
    return -math.log(1.0 - stream_fraction(state))


def stream_gaussian(state: Words) -> float:
    """A standard normal number (Box and Muller; the second of the pair is not kept)."""
    return math.sqrt(2.0 * stream_exponential(state)) * math.cos(2.0 * math.pi * stream_fraction(state))


def stream_log_gamma(shape: float, state: Words) -> float:
    """The logarithm of a gamma number of that shape and scale 1 (Marsaglia and Tsang 2000)."""
    raised = shape if shape >= 1.0 else shape + 1.0
    third = raised - 1.0 / 3.0
    while True:
        normal = stream_gaussian(state)
        root = 1.0 + normal / math.sqrt(9.0 * third)
        if root <= 0.0:
            continue
        cube = root * root * root
        if -stream_exponential(state) < 0.5 * normal * normal + third * (1.0 - cube + math.log(cube)):
            break
    value = math.log(third * cube)
    if shape < 1.0:
        value -= stream_exponential(state) / shape
    return value
