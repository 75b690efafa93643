from transformers import BitsAndBytesConfig

from interp.measurements.core import bind
from interp.measurements.specs import Evaluate
from interp.models.model import Model
from interp.runs.shards import cut
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


def test_shards_of_a_quantized_hub_model_are_not_those_of_the_whole_one(tmp_path):
    tiny = make_tiny("llama", byte_level())
    model = Model("org/model", tiny.hf, tiny.tokenizer, {"name": "org/model", "commit": "0" * 40})

    def ids():
        return [shard.id for shard in cut(bind(Evaluate(), model), some_prompts(2), tmp_path)]

    whole = ids()
    assert ids() == whole
    model.hf.config.quantization_config = BitsAndBytesConfig(load_in_8bit=True)
    assert ids() != whole
