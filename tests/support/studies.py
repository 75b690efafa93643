"""A study that is measured here, and what every page of a study keeps."""

import pandas as pd
import pytest

from interp.analysis.reading_tables import CHANCE, CONSTANT, NO_MODEL
from interp.analysis.readings import FORCED, FREE, MEDIAN
from interp.report.write import write_report
from interp.runs.execute import execute
from interp.studies.folder import StudyFolder
from interp.studies.plan import StudyPlan
from tests.support.pages import check_first_screen, unused_names
from tests.support.runs import ANY_ERRORS


def studied(folder, study, source, models):
    plan = StudyPlan.of(study, source, folder=folder, models=models, computing=ANY_ERRORS)
    plan.finish(execute(plan))
    return StudyFolder.read(folder)


def checked_page(report, folder):
    page = write_report(report, folder).read_text(encoding="utf-8")
    assert unused_names(report, page) == []
    check_first_screen(report, page)
    return page


def check_readings(folder, *, chance):
    readings = pd.read_csv(folder / "tables" / "accuracy_by_reading.csv")
    assert {FREE, FORCED, MEDIAN, CHANCE, CONSTANT} == set(readings["reading"])
    assert readings.loc[readings["reading"] == CHANCE, "accuracy"].tolist() == [
        pytest.approx(chance)
    ]
    assert readings.loc[readings["model"] != NO_MODEL, "verdict"].notna().all()
