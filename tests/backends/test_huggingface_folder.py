"""What a config.json may ask for: real ones all, and no number in it makes a loader count to a billion."""

import json
import time

import pytest

from whytrust import limits
from whytrust.backends import huggingface, huggingface_folder, language

transformers = pytest.importorskip("transformers")

MANY = 10**9
TEXT, IMAGE = ["BertForSequenceClassification"], ["ResNetForImageClassification"]
BOMBS = [
    ({"model_type": "resnet", "architectures": IMAGE, "depths": [MANY, 1, 1, 1]}, "'depths'"),
    ({"model_type": "resnet", "architectures": IMAGE, "depths": [1] * 300, "hidden_sizes": [1] * 300}, "at most 256"),
    ({"model_type": "siglip", "architectures": ["SiglipForImageClassification"], "vision_config": {"num_hidden_layers": MANY}}, "'num_hidden_layers'"),
    ({"model_type": "albert", "architectures": ["AlbertForSequenceClassification"], "inner_group_num": MANY}, "'inner_group_num'"),
    ({"model_type": "albert", "architectures": ["AlbertForSequenceClassification"], "inner_group_num": 256, "num_hidden_groups": 256, "num_hidden_layers": 256,
      "hidden_size": 2, "embedding_size": 2, "vocab_size": 9, "num_attention_heads": 1, "intermediate_size": 1, "max_position_embeddings": 8}, "2,000 layers and pieces"),
    ({"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"], "sinusoidal_pos_embds": True, "max_position_embeddings": 10**8}, "must bring the weights"),
    ({"model_type": "bert", "architectures": TEXT, "num_labels": MANY}, "at most 100,000"),
    ({"model_type": "bert", "architectures": TEXT, "id2label": {str(i): "a" for i in range(limits.LABELS + 1)}}, "at most 100,000"),
    ({"model_type": "bert", "architectures": TEXT, "a": {"b": [{"c": [MANY]}]}}, "'c'"),
]


@pytest.mark.parametrize(("told", "words"), BOMBS, ids=[f"{i} {told['model_type']}" for i, (told, _) in enumerate(BOMBS)])
def test_what_would_be_built_for_hours_is_refused(told, words, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MODULES", 2000)
    (tmp_path / "config.json").write_text(json.dumps(told))
    start = time.process_time()
    with pytest.raises(ValueError, match=words):
        huggingface.load(str(tmp_path))
    assert time.process_time() - start < 20


REAL = [transformers.BertConfig(), transformers.DistilBertConfig(), transformers.RobertaConfig(), transformers.GPT2Config(),
        transformers.ViTConfig(), transformers.ResNetConfig(), transformers.AlbertConfig(), transformers.DebertaV2Config(), transformers.XLMConfig(),
        transformers.LongformerConfig(), transformers.SwinConfig(), transformers.ConvNextConfig(), transformers.BartConfig(), transformers.T5Config(),
        transformers.CLIPConfig(), transformers.SiglipConfig(), transformers.WhisperConfig(), transformers.ModernBertConfig(), transformers.EfficientNetConfig()]
PUBLISHED = [
    # sentence-transformers/all-MiniLM-L6-v2, HuggingFaceTB/SmolLM2-135M, microsoft/resnet-50
    {"hidden_size": 384, "intermediate_size": 1536, "max_position_embeddings": 512, "num_hidden_layers": 6, "type_vocab_size": 2, "vocab_size": 30522, "gradient_checkpointing": False},
    {"bos_token_id": 0, "hidden_size": 576, "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192, "num_attention_heads": 9, "num_hidden_layers": 30,
     "num_key_value_heads": 3, "rope_theta": 100000, "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "vocab_size": 49152},
    {"depths": [3, 4, 6, 3], "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "label2id": {f"class {i}": i for i in range(1000)},
     "id2label": {str(i): f"class {i}" for i in range(1000)}, "num_channels": 3},
    # distilbert, summarisers and BERT as their authors left them
    {"dim": 768, "hidden_dim": 3072, "n_heads": 12, "n_layers": 6, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
    {"task_specific_params": {"summarization": {"max_length": 142, "min_length": 56}}, "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "eos_token_id": [128001, 128009],
     "suppress_tokens": list(range(50000, 50400)), "attention_window": [512] * 12, "rope_scaling": {"original_max_position_embeddings": 8192}, "_num_labels": 2},
]


@pytest.mark.parametrize("told", [*(json.loads(one.to_json_string(use_diff=False)) for one in REAL), *PUBLISHED],
                         ids=[*(type(one).__name__ for one in REAL), "MiniLM", "SmolLM2", "resnet-50", "DistilBERT, old", "BART, old"])
def test_configurations_of_real_models_pass(told, tmp_path):
    huggingface_folder.check_config(tmp_path / "config.json", told)


@pytest.mark.parametrize("told", [{"a": 1}, [5], "x", 5, [["BertForSequenceClassification"]]])
def test_architectures_are_a_list_of_texts(told, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": told}))
    for load in (huggingface.load, language.MaskedModel.load):
        with pytest.raises(ValueError, match=str(tmp_path)) as error:
            load(str(tmp_path))
        assert type(error.value) is ValueError


def test_a_thousand_classes_of_one_name_are_told_apart_at_once():
    start = time.process_time()
    names = huggingface._distinct([str(b"same", "ascii") for _ in range(20_000)])
    assert len(set(names)) == 20_000
    assert time.process_time() - start < 2
