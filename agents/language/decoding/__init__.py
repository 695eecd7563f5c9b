"""The forward pass of our language models, and what it keeps."""

from typing import Any

from theorybench.agents.language.decoding.decoder import Decoder
from theorybench.agents.language.decoding.gpt2 import GPT2Decoder
from theorybench.agents.language.decoding.llama import LlamaDecoder


def decoder_of(model: Any) -> Decoder:
    """Return the decoder of a model of `build`."""
    return GPT2Decoder(model) if model.config.model_type.endswith("gpt2") else LlamaDecoder(model)
