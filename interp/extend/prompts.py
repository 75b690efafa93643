"""For systems: what prompts ask for, where donors and facts come from, and the names of sides."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.choices import DEFAULT_SYSTEM as DEFAULT_SYSTEM
    from interp.choices import OWN_PAIRS as OWN_PAIRS
    from interp.prompts.answers import Parser as Parser
    from interp.prompts.answers import Unanswered as Unanswered
    from interp.prompts.answers import longer_names as longer_names
    from interp.prompts.answers import mentions as mentions
    from interp.prompts.answers import whole_text as whole_text
    from interp.prompts.later_verdicts import is_taken_back as is_taken_back
    from interp.prompts.mixing import donors_of as donors_of
    from interp.prompts.mixing import with_donors as with_donors
    from interp.prompts.own.facts import facts_about as facts_about
    from interp.prompts.own.facts import find_facts as find_facts
    from interp.prompts.own.layout import PAIR as PAIR
    from interp.prompts.prompt import ALONE as ALONE
    from interp.prompts.prompt import DONORS as DONORS
    from interp.prompts.prompt_set import Decisive as Decisive
    from interp.prompts.prompt_set import on_sides as on_sides
    from interp.prompts.systems import FACT_SIDE as FACT_SIDE
    from interp.prompts.systems import Contrast as Contrast
    from interp.prompts.systems import Filter as Filter
    from interp.prompts.systems import system_names as system_names
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)
