"""Choices between Yes and No, and the options' probabilities next to the answers."""

from interp.prompts.answers import AnswerOption, Choice

YES, NO = AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))


def yes_no(*, gold=True):
    return Choice.between(YES, NO, gold=gold)


def accepts(prompt):
    """Whether the first of a prompt's options is the correct one."""
    return prompt.answer.gold == prompt.answer.options[0].name


def with_options(result):
    """The answers table, with the probabilities of each prompt's first and second option."""
    places = result.option_probabilities.groupby("prompt_id").cumcount()
    answers = result.answers
    for place, name in enumerate(("positive", "negative")):
        rows = result.option_probabilities[places == place].set_index("prompt_id")
        answers = answers.join(rows["probability"].rename(f"{name}_probability"), on="prompt_id")
    return answers
