"""Which pairs are also run exactly where effects are estimated.

It depends on a pair's id alone, so that workers agree on it, and a run that grows keeps what it
has. The draw is independent of everything that is measured.
"""

import hashlib


def is_checked(pair_id: str, share: float) -> bool:
    """Whether a pair is among the checked ones, if about this share of all pairs are.

    A larger share checks the same pairs, and more.
    """
    digest = hashlib.sha256(f"checked {pair_id}".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64
