"""`python -m interp evaluate`: answers of models, or of texts that other tools stored."""

import argparse
from typing import Annotated

from interp.cli.fields import add_options, flag_of, given, options_in
from interp.cli.measure import MeasureCommand, Models, finish_and_print
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.measurements.specs import Evaluate, Stored
from interp.models.loading import Loading
from interp.options import FromText, Options
from interp.prompts.source import PromptSource
from interp.runs.options import ComputeOptions, ExecutionOptions
from interp.stored.text_file import TextFile, text_file


class StoredAnswers(Options):
    """The option of `evaluate` that judges stored texts instead of asking a model."""

    answers_from: tuple[Annotated[TextFile, FromText(text_file, "[NAME=]FILE")], ...] = ()
    """judge the texts in these files instead, without a model: batch output of vLLM, of
    OpenAI-like servers, Anthropic or Gemini, vLLM's RequestOutput as JSONL, Inspect logs, lm-eval
    samples, or a table (prompt, text, draw, thought, answer, model). NAME names the model if a file
    does not
    """


_OF_MODELS = (Models, Loading, Evaluate, ComputeOptions, ExecutionOptions)
"""Options that concern models and workers, apart from out and fail_on_error."""


class EvaluateCommand(MeasureCommand):
    """`evaluate`, which reads answers from a model or, with --answers-from, from files."""

    def configure(self, parser: Parser) -> None:
        """Add the options of the command."""
        super().configure(parser)
        add_options(parser.add_argument_group("stored texts"), StoredAnswers)

    def run(self, arguments: argparse.Namespace) -> None:
        """Measure models, or judge stored texts; write the small tables, and print them."""
        config = options_in(arguments, [*_OF_MODELS, PromptSource, StoredAnswers])
        files = StoredAnswers(**given(arguments, StoredAnswers, config)).answers_from
        if not files:
            super().run(arguments)
            return
        for kind in _OF_MODELS:
            for name in given(arguments, kind, config):
                if name not in ("out", "fail_on_error"):
                    raise UserError(
                        f"got both --answers-from and {flag_of(kind, name)}, but texts are judged "
                        f"without a model; omit {flag_of(kind, name)}"
                    )
        source = PromptSource(**given(arguments, PromptSource, config))
        computing = ComputeOptions(**given(arguments, ComputeOptions, config))
        execution = ExecutionOptions(**given(arguments, ExecutionOptions, config))
        from interp.measurements.answers.stored import judge_files

        folder = judge_files(
            files,
            source,
            out=execution.out,
            fail_on_error=computing.fail_on_error,
            command=arguments.command_line,
        )
        finish_and_print(folder, Stored)


EVALUATE = EvaluateCommand(Evaluate)
