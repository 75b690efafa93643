"""For measurements: options, batches of tokenized prompts, forward passes, rows and their types."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.attribution.registry import CHEAP_METHODS as CHEAP_METHODS
    from interp.choices import LAST as LAST
    from interp.choices import AnswerReading as AnswerReading
    from interp.measurements.activations.measure import Place as Place
    from interp.measurements.activations.measure import vectors_at as vectors_at
    from interp.measurements.answers.decoding import generate as generate
    from interp.measurements.answers.generation import (
        GenerationMeasurement as GenerationMeasurement,
    )
    from interp.measurements.specs import OfPairs as OfPairs
    from interp.measurements.specs import ReadsAnswers as ReadsAnswers
    from interp.measurements.specs import Target as Target
    from interp.measuring.core import explained as explained
    from interp.measuring.spec import Indices as Indices
    from interp.measuring.spec import Prompts as Prompts
    from interp.models.kinds import CAUSAL as CAUSAL
    from interp.models.sites import layer_count as layer_count
    from interp.models.sites import locate as locate
    from interp.reading.budget import token_budget as token_budget
    from interp.reading.pieces import token_texts as token_texts
    from interp.reading.tokens import Batch as Batch
    from interp.reading.tokens import TokenizedPrompt as TokenizedPrompt
    from interp.runs.shards import Filters as Filters
    from interp.scoring.answer_tokens import AnswerTokenizer as AnswerTokenizer
    from interp.scoring.answers import NOT_FINITE as NOT_FINITE
    from interp.scoring.answers import answer_error as answer_error
    from interp.scoring.answers import answer_tables as answer_tables
    from interp.scoring.answers import predict as predict
    from interp.scoring.answers import read_prompts as read_prompts
    from interp.scoring.likelihood import (
        continuation_log_probabilities as continuation_log_probabilities,
    )
    from interp.tables import BOOLEAN as BOOLEAN
    from interp.tables import INTEGER as INTEGER
    from interp.tables import MODEL as MODEL
    from interp.tables import PROMPT_ID as PROMPT_ID
    from interp.tables import SCHEMAS as SCHEMAS
    from interp.tables import Row as Row
    from interp.tables import table as table
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)
