"""transformers' offloaded cache of keys and values, in a small model with random weights."""

import client
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


def program() -> dict:
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=512,
        attn_implementation="eager",
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).to("cuda").eval()
    cache = DynamicCache(config=config, offloading=True)
    tokens = torch.randint(512, (8, 300)).to("cuda")
    with torch.no_grad():
        for at in (slice(0, 256), *(slice(it, it + 1) for it in range(256, 262))):
            logits = model(tokens[:, at], past_key_values=cache, use_cache=True).logits
    torch.cuda.synchronize()
    places = [str(layer.keys.device) for layer in cache.layers]
    lengths = [layer.get_seq_length() for layer in cache.layers]
    offered = [str(it.dtype) for it in (logits, tokens)]
    kept = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    computed = {"logits": client.computed(logits), "kept": client.computed(kept)}
    return {"places": places, "lengths": lengths, "kinds": offered} | computed


if __name__ == "__main__":
    client.run(program)
