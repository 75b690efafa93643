"""Functions that run the probes from a notebook, like those of `interp.api`."""

from interp.extend import call_of
from interp_probes.facts.show import FactFamiliarity, KnownFacts
from interp_probes.linear.show import LinearProbes
from interp_probes.specs import Familiarity, Knowledge, Residuals

probe_linear = call_of(Residuals, LinearProbes, module=__name__)
probe_familiarity = call_of(Familiarity, FactFamiliarity, module=__name__)
probe_knowledge = call_of(Knowledge, KnownFacts, module=__name__)
