from interp.report.figures.lines import matrix
from tests.report.figures.drawn import BARS, INTERVAL


def test_cells_have_their_interval_below_the_share():
    ax = matrix(BARS, x="model", y="rule", value="accuracy", n="n", interval=INTERVAL)
    assert [text.get_text() for text in ax.texts] == [
        "0.200\n0.10 to 0.30",
        "0.400\n0.30 to 0.50",
        "0.800\n0.70 to 0.90",
    ]
