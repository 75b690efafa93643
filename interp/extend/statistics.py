"""Intervals, tests and decisions for any table of trials that come in clusters.

docs/statistics.md says which is for what, and what its error rates are.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.statistics.classical import WelchTest as WelchTest
    from interp.statistics.classical import least_rank_p as least_rank_p
    from interp.statistics.classical import spearman as spearman
    from interp.statistics.classical import spearman_table as spearman_table
    from interp.statistics.classical import welch as welch
    from interp.statistics.clusters import FEWEST as FEWEST
    from interp.statistics.clusters import ClusterContrast as ClusterContrast
    from interp.statistics.clusters import cluster_contrast as cluster_contrast
    from interp.statistics.clusters import too_few as too_few
    from interp.statistics.contrasts import CONFIRMATORY as CONFIRMATORY
    from interp.statistics.contrasts import MODEL as MODEL
    from interp.statistics.contrasts import Difference as Difference
    from interp.statistics.contrasts import contrast_table as contrast_table
    from interp.statistics.contrasts import difference as difference
    from interp.statistics.decisions import DIFFERENT as DIFFERENT
    from interp.statistics.decisions import ONE_SIDED as ONE_SIDED
    from interp.statistics.decisions import OPEN as OPEN
    from interp.statistics.decisions import SIGNIFICANT as SIGNIFICANT
    from interp.statistics.decisions import SMALLER as SMALLER
    from interp.statistics.decisions import SMALLEST as SMALLEST
    from interp.statistics.decisions import UNTESTED as UNTESTED
    from interp.statistics.decisions import holm as holm
    from interp.statistics.decisions import out_of_reach as out_of_reach
    from interp.statistics.decisions import verdicts as verdicts
    from interp.statistics.discrimination import Discrimination as Discrimination
    from interp.statistics.discrimination import concordance as concordance
    from interp.statistics.discrimination import discrimination as discrimination
    from interp.statistics.discrimination import mean_concordance as mean_concordance
    from interp.statistics.means import ClusterMean as ClusterMean
    from interp.statistics.means import cluster_mean as cluster_mean
    from interp.statistics.proportions import proportions as proportions
    from interp.statistics.proportions import shrunken_shares as shrunken_shares
    from interp.statistics.proportions import wilson as wilson
    from interp.statistics.resampling import bootstrap_sums as bootstrap_sums
    from interp.statistics.summaries import LEVEL as LEVEL
    from interp.statistics.summaries import UPPER as UPPER
    from interp.statistics.summaries import grouped as grouped
    from interp.statistics.summaries import percentile_interval as percentile_interval
    from interp.statistics.summaries import table_by as table_by
    from interp.statistics.summaries import weighted_median as weighted_median
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)
