"""The evidence of certificates: labels you can rely on, whatever the policy, the delays and the moment you stop.

With a tolerance z, either answer is right for an arm within z of the bar b. For each arm, one capital bets against "the
mean is at most b − z", for above, and one against "the mean is at least b + z", for below. Each is the mean of BETS
products of factors 1 + λ (x − m), one per reward, m the mean that it bets against. While its claim holds, it is a
nonnegative supermartingale, so the chance that it ever reaches K / risk is at most risk / K (Ville). An arm whose
capital reaches K / risk is settled. Only one of the two labels can be wrong, so the two capitals need no half each.

The rules of this file are those of `board.py`, and: products, not logarithms, so that a settled label can be derived
again anywhere. The second part says which rewards are committed, and in which order.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

from .board import Board, board_total_with_missing
from .places import Sheet
from .question import is_above

BETS = 16
ALL_IN = 2.4  # the stake of bet 0, which an arm that never fails wins
STAKE = 13.6 / (7.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * 1.7)))))))
UNREACHED = 1e308  # a level that nothing reaches
SMALLEST = 1e-300  # a product below this becomes 0, which is the same on every machine
OPEN, ABOVE, BELOW, EITHER = 0, 1, 2, 3  # an arm's settled label; EITHER: the side that its mean is on


class Stakes(NamedTuple):
    """The scalars of the certificates, for rewards scaled to [0, 1]."""

    bar: float  # b
    low_edge: float  # b − z: above is proven against a mean of this
    high_edge: float  # b + z: below is proven against a mean of this
    level: float  # K / risk
    alone: float  # the capital that settles an arm by itself: the level, or UNREACHED with ranks (`error_rate.py`)
    bets: Sequence[float]  # λ of each bet, in the order of an arm's capitals: see `bet_capital`


def capital_bets(edge: float, tolerance: float = 0.0) -> list[float]:
    """λ of the BETS bets on one side, the largest first; ``edge`` is b − z for "above", 1 − b − z for "below".

    With a tolerance z, the best bet on an arm on the bar is about z over its variance, on the other edge twice that.
    Smaller bets would only help arms beyond that edge, which the other capital settles.

    >>> capital_bets(0.5)[:3], capital_bets(0.5, 0.1)[-1]
    ([2.0, 1.6, 0.96], 0.6000000000000001)
    """
    sizes = [1.0 / edge, 0.8 / edge]
    while len(sizes) < BETS:
        sizes.append(sizes[-1] * (0.6 if len(sizes) < 8 else 0.465))
    least = 1.5 * tolerance / (edge * (1.0 - edge)) if tolerance > 0.0 else 0.0
    return [max(size, least) for size in sizes]


def grow_capital(
    capital: MutableSequence[float], start: int, bets: Sequence[float], cap: float, first: float, gain: float
) -> float:
    """Multiply the products from ``start`` on by 1 + λ gain, bet 0's by ``first``; their mean is the new capital.

    λ is at most ``cap``: a bet can lose almost everything, but no more than it has.
    """
    total = capital[start] * first
    if total < SMALLEST:
        total = 0.0
    capital[start] = total
    for at in range(start + 1, start + BETS):
        share = bets[at]
        if share > cap:
            share = cap
        product = capital[at] * (1.0 + share * gain)
        if product < SMALLEST:
            product = 0.0
        capital[at] = product
        total += product
    return total / BETS


def commit_to_capital(capital: MutableSequence[float], stakes: Stakes, low: float, high: float) -> int:
    """Commit one more reward to the capitals of an arm whose rewards have no cases; return what is settled then."""
    return bet_capital(capital, stakes, low, high, stakes.low_edge, stakes.high_edge)


def bet_capital(
    capital: MutableSequence[float], stakes: Stakes, low: float, high: float, low_bar: float, high_bar: float
) -> int:
    """Commit one more reward to the capitals of an arm; return what is settled then.

    ``low`` is the reward that the capital for above sees, ``high`` the one that the capital for below sees. They are
    the same for a told reward, and 0 and 1 for a charged pull. The bars are the means that the two bet against: the
    edges, or with cases what the remaining ones would need (`Docket`). ``capital`` holds BETS products for above, then
    BETS for below.
    """
    bets, room = stakes.bets, 1.0 - high_bar
    gain, loss = low - low_bar, high_bar - high
    all_up, all_down = bets[0], bets[BETS]
    cap_up = cap_down = UNREACHED
    first_up, first_down = 1.0 + all_up * gain, 1.0 + all_down * loss
    if low_bar > 0.0:
        cap_up = 0.98 / low_bar
        if all_up >= 1.0 / low_bar:  # so that the worst possible reward makes it exactly 0
            first_up = low / low_bar
    if room > 0.0:
        cap_down = 0.98 / room
        if all_down >= 1.0 / room:
            first_down = (1.0 - high) / room
    above = grow_capital(capital, 0, bets, cap_up, first_up, gain)
    below = grow_capital(capital, BETS, bets, cap_down, first_down, loss)
    if above < stakes.alone and below < stakes.alone:  # a call less for nearly every reward
        return OPEN
    return capital_label(above, below, stakes.alone)


def capital_label(above: float, below: float, level: float) -> int:
    """The label that two capitals settle."""
    if above >= level:
        return EITHER if below >= level else ABOVE
    return BELOW if below >= level else OPEN


def resolve_capital_label(label: int, mean: float, bar: float) -> int:
    """A label that both capitals settle at the same reward is the side of the bar that the mean is on."""
    if label != EITHER:
        return label
    return ABOVE if mean >= bar else BELOW


def reset_capital(capital: MutableSequence[float]) -> None:
    """Give every bet its stake; the stakes of each capital have the mean 1."""
    stake = 1.0
    for at in range(len(capital)):
        bet = at % BETS
        if bet == 0:
            stake = ALL_IN
        elif bet < 8:
            stake = STAKE
        else:
            stake *= 0.7
        capital[at] = stake


def fresh_capital() -> list[float]:
    """The capitals of an arm without any reward."""
    capital = [0.0] * (2 * BETS)
    reset_capital(capital)
    return capital


def mean_capital(capital: MutableSequence[float], start: int) -> float:
    """One of an arm's capitals: the mean of its BETS products."""
    total = 0.0
    for at in range(start, start + BETS):
        total += capital[at]
    return total / BETS


# Which rewards the capitals see, and in which order.
#
# 1. Rewards are committed in the order in which the arm's pulls were *issued*. In the order of arrival, delays that
#    depend on the reward would break the guarantee.
# 2. A dropped pull is charged the worst reward, in its place: 0 for the capital for above, 1 for the one for below.
#    So is a pending pull when too many rewards wait behind it. A charged capital is below the true one on every path.
# 3. A cancelled pull never began. It is charged all the same once a later pull of the arm is told. Otherwise an agent
#    could cancel depending on what the later pulls returned, or on what this pull's seed would return.
# 4. The order of imported rewards cannot be trusted: see `weigh_imported_evidence`.
#
# Eval sets (`places.py`) are sampled without replacement. Each bet is then placed against the mean that the *remaining*
# cases would need if the set's mean were on the bar, and counting settles an arm when the missing rewards no longer
# matter. Imported results are known values there, not samples: the certificate's population is what is left.

# What the certificate knows about a pull; of a place: FREED if its pull was dropped and it may be tried again.
PENDING, TOLD, CHARGED, LEFT_OUT, CANCELLED, FREED = 0, 1, 2, 3, 4, 5


class Docket(NamedTuple):
    """Each arm's pulls in the order in which they were issued, as a linked list through the columns of pulls.

    Pulls are numbered from 1; 0 means none.
    """

    first: MutableSequence[int]  # of an arm: the first pull that is not committed yet
    last: MutableSequence[int]  # of an arm: the last pull issued
    waiting: MutableSequence[int]  # of an arm: rewards that wait for an earlier pull
    committed: MutableSequence[int]  # of an arm: rewards that are in its capitals
    charged: MutableSequence[int]  # of an arm: pulls charged in its capitals
    settled: MutableSequence[int]  # of an arm: OPEN, ABOVE or BELOW
    following: MutableSequence[int]  # of a pull: the arm's next one
    outcome: MutableSequence[int]  # of a pull: PENDING, TOLD, CHARGED, LEFT_OUT, CANCELLED or FREED
    reward: MutableSequence[float]  # of a pull that was told: its scaled reward


def enqueue_evidence(docket: Docket, arm: int, pull: int) -> None:
    """A pull of the arm was issued."""
    if docket.last[arm] != 0:
        docket.following[docket.last[arm]] = pull
    if docket.first[arm] == 0:
        docket.first[arm] = pull
    docket.last[arm] = pull


def tell_evidence(docket: Docket, arm: int, pull: int, scaled: float) -> None:
    """The reward of a pull came back. It counts unless the pull was charged or left out before."""
    if docket.outcome[pull] == PENDING or docket.outcome[pull] == FREED:
        docket.outcome[pull] = TOLD
        docket.reward[pull] = scaled
        docket.waiting[arm] += 1


def give_up_evidence(docket: Docket, pull: int, outcome: int) -> None:
    """A pull was dropped: it is CHARGED, LEFT_OUT, CANCELLED or FREED."""
    if docket.outcome[pull] == PENDING:
        docket.outcome[pull] = outcome


def retry_evidence(docket: Docket, pull: int) -> None:
    """The place of this pull is tried again."""
    if docket.outcome[pull] == FREED:
        docket.outcome[pull] = PENDING


def is_evidence_ready(docket: Docket, arm: int, pending: int) -> bool:
    """Whether the arm's first pull can be committed. If too many rewards wait behind a pending one, it is charged."""
    pull = docket.first[arm]
    outcome = docket.outcome[pull]
    if docket.settled[arm] != OPEN or outcome == FREED:
        return False
    if outcome == CANCELLED:
        if docket.waiting[arm] == 0:
            return False
        docket.outcome[pull] = CHARGED
    elif outcome == PENDING:
        # more than 16 + 4 · pending + committed / 4 rewards wait behind it
        if 4 * docket.waiting[arm] <= 64 + 16 * pending + docket.committed[arm]:
            return False
        docket.outcome[pull] = CHARGED
    return True


def commit_next_evidence(
    docket: Docket, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes, low: float, high: float
) -> int:
    """Commit the arm's next reward; with cases, against what the remaining ones would need."""
    low_bar, high_bar = stakes.low_edge, stakes.high_edge
    if sheet.cases > 0:
        left = sheet.places[arm] - docket.committed[arm] - docket.charged[arm]
        low_bar = (sheet.cases * stakes.low_edge - sheet.least[arm]) / left
        high_bar = (sheet.cases * stakes.high_edge - sheet.most[arm]) / left
        sheet.least[arm] += low
        sheet.most[arm] += high
    return bet_capital(capital, stakes, low, high, low_bar, high_bar)


def commit_first_evidence(
    docket: Docket, board: Board, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes
) -> None:
    """Commit the arm's first pull; only after `is_evidence_ready` returned True."""
    pull = docket.first[arm]
    outcome = docket.outcome[pull]
    docket.first[arm] = docket.following[pull]  # 0 if it is the last
    if outcome == LEFT_OUT:
        return
    low, high = 0.0, 1.0
    if outcome == TOLD:
        low = high = docket.reward[pull]
    label = commit_next_evidence(docket, sheet, arm, capital, stakes, low, high)
    docket.settled[arm] = OPEN if label == OPEN else resolve_capital_label(label, board.mean[arm], stakes.bar)
    if outcome == TOLD:
        docket.waiting[arm] -= 1
        docket.committed[arm] += 1
    else:
        docket.charged[arm] += 1


def note_evidence_lead(board: Board, arm: int, capital: MutableSequence[float]) -> None:
    """Where a few arms are to be found: say how much evidence there is that the arm reaches the bar."""
    board.lead[arm] = mean_capital(capital, 0)


def weigh_evidence(
    docket: Docket, board: Board, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes
) -> bool:
    """Commit every pull of the arm that can be committed; return whether this settled the arm."""
    was_open = docket.settled[arm] == OPEN
    while docket.first[arm] != 0 and is_evidence_ready(docket, arm, board.pending[arm]):
        commit_first_evidence(docket, board, sheet, arm, capital, stakes)
    return was_open and docket.settled[arm] != OPEN


class Ends(NamedTuple):
    """What counting needs, in raw units, so that a mean that is exactly on the bar or an edge reaches it."""

    low: float  # the lowest that can count
    high: float  # the highest
    bar: float
    low_edge: float
    high_edge: float


def settle_evidence_by_count(docket: Docket, board: Board, sheet: Sheet, arm: int, ends: Ends) -> bool:
    """Settle the arm if its missing rewards no longer matter, whatever they are; return whether this settled it.

    This needs no probability. In the rare study where bets had settled an arm wrongly, beyond its edge, the label
    becomes the right one.
    """
    total, residue, seen = board.total[arm], board.residue[arm], board.seen[arm]
    missing, label = sheet.cases - seen, docket.settled[arm]
    least, most = (
        board_total_with_missing(total, residue, missing, ends.low),
        board_total_with_missing(total, residue, missing, ends.high),
    )
    if label == ABOVE:
        if not is_above(most, sheet.cases, ends.low_edge):
            docket.settled[arm] = BELOW
        return False
    if label == BELOW:
        if is_above(least, sheet.cases, ends.high_edge):
            docket.settled[arm] = ABOVE
        return False
    reaches = is_above(least, sheet.cases, ends.low_edge)
    misses = not is_above(most, sheet.cases, ends.high_edge)
    if reaches and misses:  # the mean so far decides; of an exact arm it is the mean
        reaches = seen == 0 or is_above(total + residue, seen, ends.bar)
    elif not reaches and not misses:
        return False
    docket.settled[arm] = ABOVE if reaches else BELOW
    return True


# Imported rewards: their order cannot be trusted, so all of them are committed, then the capital is looked at once.
#
# If it were looked at after each of them, a file sorted by reward could settle any arm. The products do not depend on
# the order.

STEP = float(1 << 64)  # a power of 2: multiplying by it rounds nothing
MOST = 1e300  # an imported product counts for no more than this


def weigh_imported_evidence(
    docket: Docket, board: Board, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes, last: int
) -> None:
    """Commit everything that was imported for the arm, up to pull ``last``, then look at its capitals once.

    A product may grow or shrink beyond the range of floats on the way, so its powers of STEP are counted separately.
    Otherwise the result would depend on the order of the rewards.
    """
    blind = Stakes(stakes.bar, stakes.low_edge, stakes.high_edge, stakes.level, UNREACHED, stakes.bets)
    steps = [0] * len(capital)
    while 0 < docket.first[arm] <= last:
        commit_first_evidence(docket, board, sheet, arm, capital, blind)
        for at in range(len(capital)):
            if capital[at] > STEP:
                capital[at] /= STEP
                steps[at] += 1
            elif 0.0 < capital[at] < 1.0 / STEP:
                capital[at] *= STEP
                steps[at] -= 1
    for at in range(len(capital)):
        while steps[at] > 0 and capital[at] < MOST:
            capital[at] = min(capital[at] * STEP, MOST)
            steps[at] -= 1
        while steps[at] < 0 and capital[at] > 0.0:
            capital[at] /= STEP
            steps[at] += 1
        if capital[at] < SMALLEST:
            capital[at] = 0.0
    label = capital_label(mean_capital(capital, 0), mean_capital(capital, BETS), stakes.alone)
    docket.settled[arm] = resolve_capital_label(label, board.mean[arm], stakes.bar)
