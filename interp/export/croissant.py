"""A data set of prompts with its description in Croissant 1.0, which loaders and indices read.

Source: the Croissant format of MLCommons (Akhtar et al., 2024).
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version

from interp.export.tasks import prompt_lines, task_name
from interp.prompts.prompt_set import PromptSet

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_FIELDS = {
    "prompt_id": "the prompt",
    "pair_id": "what the prompts of a pair share",
    "side": "which member of its pair the prompt is",
    "text": "what the model reads",
    "gold": "name of the correct option",
    "weight": "how many prompts of the whole data set it represents",
}


def described(prompts: PromptSet) -> Mapping[str, str]:
    """The prompts as JSON lines, and croissant.json.

    Raises:
        UserError: prompts that are no choice among options, or have messages around them.
    """
    file = f"{task_name(prompts.system)}.jsonl"
    lines = prompt_lines(prompts)
    description = json.dumps(_description(prompts, file, lines), indent=2, ensure_ascii=False)
    return {file: lines, "croissant.json": f"{description}\n"}


def _description(prompts: PromptSet, file: str, lines: str) -> Mapping[str, object]:
    content = lines.encode("utf-8")
    factors = dict.fromkeys(name for prompt in prompts for name in prompt.factors)
    factors.pop("options", None)  # the answer options, which are no text
    fields = dict.fromkeys(factors, "something that the data set varies") | _FIELDS
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": task_name(prompts.system),
        "description": f"{len(prompts):,} prompts of {prompts.system}, in groups whose members "
        f"differ in their side ({', '.join(prompts.sides)}). Each line also has the answer options "
        "with their surface forms.",
        "version": version("interp"),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "contentSize": f"{len(content)} B",
                "encodingFormat": "application/jsonlines",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "prompts",
                "name": "prompts",
                "key": {"@id": "prompts/prompt_id"},
                "field": [_field(name, text, file) for name, text in fields.items()],
            }
        ],
    }


def _field(name: str, description: str, file: str) -> Mapping[str, object]:
    return {
        "@type": "cr:Field",
        "@id": f"prompts/{name}",
        "name": name,
        "description": description,
        "dataType": "sc:Float" if name == "weight" else "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }
