"""Scores of other tools, as a measurement that computes nothing."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, InstanceOf, JsonValue

from interp.measuring.spec import Spec


class Given(Spec):
    """Scores of segments that other tools computed, beside which methods are judged."""

    name = "given"
    measures = "interp.judging.read_scores:given_scores"
    fills = ("segment_scores",)
    reads_thoughts = False
    own_answers = False
    excluded_from_identity = frozenset({"rows"})

    files: JsonValue = None
    """the checksum of each file, by the name of its scores"""
    rows: InstanceOf[Mapping[str, Any]] = Field(default_factory=dict)
    """the rows of each prompt, by id; those without a model are for every model"""
