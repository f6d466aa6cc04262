"""Policies of AGILE: when a false positive deescalates its entry, and how far to escalate.

See docs/decisions/0016 for what each constant was measured by.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part

ALWAYS, FIXED, AUTO, RENT = range(4)
"""Policies of deescalation; see `cif_config.py`."""

P_KIND, P_LIMIT, P_COUNT, P_UPDATES, P_WRONG, P_ASKED, P_MEMBERS = range(7)
"""Places in the policy's state, float64."""

DECAY = 0.9
"""What an event leaves of the updates and false positives before it: both are recent ones."""

BUSY = 0.02
"""Updates a subscription and event from which an entry that has to escalate leaves its cell in the
index for a range of its own, which every event reads."""

RESTLESS = 0.001
"""Updates a subscription and event at which a deescalation has to be earned by the whole rent, and
by twice the rent at twice as many: it costs as much as a hundred candidates, and does not last."""

SAMPLE = 8
"""One event in so many counts which entries it has found."""

FOUND_ENOUGH = 4
"""Times that an entry was found, in the sample, which cost about as much as an escalation."""


FOUND_TOO_OFTEN = 32
"""Times, in the sample, from which the next range is narrower: what is found costs more by then
than the escalations that a narrower range adds."""

AS_PUBLISHED, NARROWER, LEVEL, WIDER = -1.0, -0.5, 0.0, 0.5
"""Growths of a range at one escalation; the first: by what an update must.  What is found between
two escalations grows with the third power of the width: a step must not lead from too few to too
many."""


@part
def _rate(policy):
    """Recent updates a subscription and event."""
    return policy[P_UPDATES] * (1.0 - DECAY) / policy[P_MEMBERS]


@part
def ask(policy, wrong, e, requests):
    """A false positive of entry e: whether the policy wants it deescalated."""
    kind = policy[P_KIND]
    policy[P_WRONG] += 1
    wants = kind == ALWAYS
    if kind == RENT:
        if wrong[e] < 255:
            wrong[e] += 1
        wants = wrong[e] >= 1.0 + policy[P_LIMIT] * _rate(policy) / RESTLESS
        if wants:
            wrong[e] = 0
    elif not wants:
        policy[P_COUNT] += 1
        limit = policy[P_LIMIT]
        if kind == AUTO:
            limit = policy[P_LIMIT] * policy[P_UPDATES] / policy[P_WRONG]
        wants = policy[P_COUNT] >= limit
        if wants:
            policy[P_COUNT] = 0
    if wants and policy[P_ASKED] < len(requests):
        requests[np.int64(policy[P_ASKED])] = e
        policy[P_ASKED] += 1


@part
def growth_of(policy, spent):
    """How an entry that has left its K(e) gets a new one; see `agile_kernels.update`.

    The paper's policies escalate by what they must, and so does `rent` where values rest.  Where
    they are busy a range grows until an entry is found so often between two escalations that these
    are the smaller cost.  One that is found very often shrinks again.
    """
    if policy[P_KIND] != RENT or _rate(policy) < BUSY:
        return AS_PUBLISHED
    if spent >= FOUND_TOO_OFTEN:
        return NARROWER
    return WIDER if spent < FOUND_ENOUGH else LEVEL
