"""Methods of other libraries, the peers of native methods, added as another package would.

They are called like any method once `install` has registered them for a test.
"""

from importlib.metadata import EntryPoint

import captum.attr
import torch

from interp.attribution import registry
from interp.attribution.methods.captum import token_scores
from interp.attribution.registry import Method


def _peer(name, implementation):
    module = "inseq_methods" if name.startswith("inseq:") else "peers"
    implementation = f"tests.support.{module}:{implementation}"
    return Method(name, "a peer", "as native", "Nobody 2026", "signed", "own", implementation)


CAPTUM_IXG = _peer("captum:input_x_gradient", "InputXGradient")
INSEQ_SALIENCY = _peer("inseq:saliency", "Saliency")
INSEQ_ATTENTION = _peer("inseq:attention", "Attention")

_PEERS = ("CAPTUM_IXG", "INSEQ_SALIENCY", "INSEQ_ATTENTION")


def install(monkeypatch):
    """Register all peers until the test ends."""
    points = {
        globals()[attribute].name: EntryPoint(
            globals()[attribute].name, f"{__name__}:{attribute}", registry.METHODS
        )
        for attribute in _PEERS
    }
    monkeypatch.setattr(registry, "plugins", lambda group: points)


class InputXGradient:
    """Input x gradient, which is complete if the target is linear in the embeddings."""

    def __init__(self, model):
        pass

    def attribute(self, explained):
        inputs = explained.embeddings.clone().requires_grad_()
        scores = captum.attr.InputXGradient(explained.values).attribute(inputs)
        return token_scores(scores, explained, torch.zeros_like(explained.embeddings))
