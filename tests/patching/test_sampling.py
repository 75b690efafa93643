import pytest

from interp.patching.sampling import is_checked

IDS = [f"pair {number}" for number in range(20_000)]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.9])
def test_about_the_share_is_checked(share):
    assert sum(is_checked(pair_id, share) for pair_id in IDS) / len(IDS) == pytest.approx(
        share, abs=0.015
    )


def test_a_larger_share_checks_the_same_pairs_and_more():
    few, many = ({i for i in IDS[:2000] if is_checked(i, share)} for share in (0.2, 0.5))
    assert few < many
