#!/usr/bin/env python3
"""Makes gguf/: GGUF files of the folders of other fixtures, written by the package gguf as llama.cpp's converter does.

The names of tensors are those of gguf's tables; heads of Llamas are permuted, the weights of Gemma's norms have 1 added,
matrices of GPT-2 are transposed, GPT-NeoX's queries, keys and values are separated, as convert_hf_to_gguf.py does it.
Llama's tokenizers are those of the folders. Needs gguf, numpy, safetensors and sentencepiece; the tests do not."""
import json, os

import gguf, numpy
from safetensors.numpy import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data")
F16, F32, Q8_0 = (gguf.GGMLQuantizationType[name] for name in ("F16", "F32", "Q8_0"))


def folder(name):
    path = os.path.join(DATA, name)
    with open(os.path.join(path, "config.json")) as file:
        return json.load(file), load_file(os.path.join(path, "model.safetensors")), path


def permuted(weights, heads):
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def general(writer, config):
    at = lambda *keys: next(config[key] for key in keys if config.get(key) is not None)
    writer.add_context_length(at("max_position_embeddings", "n_positions"))
    writer.add_embedding_length(at("hidden_size", "n_embd"))
    writer.add_block_count(at("num_hidden_layers", "n_layer"))
    writer.add_head_count(at("num_attention_heads", "n_head"))
    writer.add_feed_forward_length(config.get("intermediate_size") or config.get("n_inner") or 4 * config["n_embd"])
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(config.get("layer_norm_eps", config.get("layer_norm_epsilon")))
    if "num_key_value_heads" in config:
        writer.add_head_count_kv(config["num_key_value_heads"])


def rope(writer, config):
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    full = parameters.get("full_attention", parameters)
    theta = full.get("rope_theta", config.get("rope_theta"))
    writer.add_rope_freq_base(theta)
    if "sliding_attention" in parameters:
        writer.add_key_value("gemma3.rope.freq_base_swa", parameters["sliding_attention"]["rope_theta"],
                             gguf.GGUFValueType.FLOAT32)
    if full.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(full["factor"])
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    if full.get("rope_type") == "llama3":
        frequency = theta ** -(numpy.arange(0, head, 2) / head)
        length = 2 * numpy.pi / frequency
        low, high = full["low_freq_factor"], full["high_freq_factor"]
        first = full["original_max_position_embeddings"]
        smooth = (first / length - low) / (high - low)
        factors = numpy.where(length < first / high, 1, numpy.where(length > first / low, full["factor"],
                              1 / ((1 - smooth) / full["factor"] + smooth)))
        writer.add_tensor("rope_freqs.weight", factors.astype(numpy.float32))
    if "partial_rotary_factor" in full:
        writer.add_rope_dimension_count(int(head * full["partial_rotary_factor"]))
    else:
        writer.add_rope_dimension_count(head)
        writer.add_key_length(head)
        writer.add_value_length(head)


def tensor_type(name, values, kind):
    """Vectors and what decides about experts stay float32, as in llama.cpp."""
    return F32 if values.ndim < 2 or "ffn_gate_inp" in name or values.shape[-1] % 32 and kind == Q8_0 else kind


def write(name, source, architecture, kind=F32, edit=None, extra=None, **options):
    config, tensors, path = folder(source)
    file = os.path.join(DATA, "gguf", name + ".gguf")
    writer = gguf.GGUFWriter(file, gguf.MODEL_ARCH_NAMES[architecture], **options)
    general(writer, config)
    if "rope_parameters" in config or "rope_theta" in config:
        rope(writer, config)
    if extra:
        extra(writer, config, path)
    names = gguf.get_tensor_name_map(architecture, config.get("num_hidden_layers") or config.get("n_layer"))
    experts = {}
    for key, values in sorted(tensors.items()):
        if "pooler" in key or key.endswith((".attn.bias", "position_ids")):
            continue
        if ".experts." in key:
            before, number, after = key.partition(".experts.")[0], *key.split(".")[-3:-1]
            experts.setdefault((before, after), {})[int(number)] = values
            continue
        target = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert target, key
        if edit:
            values = edit(key, values, config)
        add(writer, target, numpy.ascontiguousarray(values), kind)
    for (before, after), parts in experts.items():
        target = names.get_name(before + ".experts." + after + ".weight", try_suffixes=(".weight",))
        assert target, (before, after)
        add(writer, target, numpy.stack([parts[i] for i in range(len(parts))]), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add(writer, name, values, kind):
    kind = tensor_type(name, values, kind)
    writer.add_tensor(name, gguf.quants.quantize(values.astype(numpy.float32), kind), raw_dtype=kind)


def llama_heads(key, values, config):
    heads = config["num_attention_heads"]
    if ".q_proj." in key:
        return permuted(values, heads)
    return permuted(values, config.get("num_key_value_heads") or heads) if ".k_proj." in key else values


def gemma_norms(key, values, config):
    return values + 1 if key.endswith("norm.weight") else values


def gpt2_matrices(key, values, config):
    return values.T if key.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")) else values


def neox_heads(key, values, config):
    if ".query_key_value." not in key:
        return values
    heads, width = config["num_attention_heads"], config["hidden_size"]
    return values.reshape(heads, 3, width // heads, *values.shape[1:]).swapaxes(0, 1).reshape(values.shape)


def window(writer, config, path):
    writer.add_sliding_window(config["sliding_window"])


def gemma(writer, config, path):
    window(writer, config, path)
    for key, add in (("attn_logit_softcapping", writer.add_attn_logit_softcapping),
                     ("final_logit_softcapping", writer.add_final_logit_softcapping)):
        if config.get(key):
            add(config[key])
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])


def mixture(writer, config, path):
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])


def neox(writer, config, path):
    writer.add_parallel_residual(config["use_parallel_residual"])


def sentencepiece_tokenizer(writer, config, path):
    from sentencepiece import SentencePieceProcessor
    pieces = SentencePieceProcessor(model_file=os.path.join(path, "tokenizer.model"))
    tokens, scores, types = [], [], []
    for i in range(config["vocab_size"]):
        if i >= pieces.vocab_size():  # llama.cpp fills up the vocabulary
            tokens.append(f"[PAD{i}]".encode())
            scores.append(-1000.0)
            types.append(gguf.TokenType.UNUSED)
            continue
        tokens.append(pieces.id_to_piece(i).encode())
        scores.append(pieces.get_score(i))
        types.append(gguf.TokenType.UNKNOWN if pieces.is_unknown(i) else gguf.TokenType.CONTROL if pieces.is_control(i)
                     else gguf.TokenType.UNUSED if pieces.is_unused(i) else gguf.TokenType.BYTE if pieces.is_byte(i)
                     else gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")


def byte_level_tokenizer(writer, config, path):
    with open(os.path.join(path, "tokenizer.json")) as file:
        tokenizer = json.load(file)
    tokens = {number: text for text, number in tokenizer["model"]["vocab"].items()}
    types = {number: gguf.TokenType.NORMAL for number in tokens}
    for each in tokenizer["added_tokens"]:
        tokens[each["id"]] = each["content"]
        types[each["id"]] = gguf.TokenType.CONTROL if each["special"] else gguf.TokenType.USER_DEFINED
    merges = [" ".join(each) if isinstance(each, list) else each for each in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list([tokens[i] for i in range(config["vocab_size"])])
    writer.add_token_types([types[i] for i in range(config["vocab_size"])])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def main():
    os.makedirs(os.path.join(DATA, "gguf"), exist_ok=True)
    arch = gguf.MODEL_ARCH
    write("llama_flat", "llama/flat", arch.LLAMA, edit=llama_heads, extra=sentencepiece_tokenizer)
    write("llama_nested", "llama/nested", arch.LLAMA, F16, edit=llama_heads, extra=byte_level_tokenizer)
    write("mistral", "decoders/mistral", arch.LLAMA, edit=llama_heads, extra=window)
    write("mixtral", "decoders/mixtral", arch.LLAMA, edit=llama_heads, extra=mixture)
    write("qwen2", "decoders/qwen2", arch.QWEN2)
    write("qwen3", "qwen3", arch.QWEN3)
    write("gemma2", "decoders/gemma2", arch.GEMMA2, edit=gemma_norms, extra=gemma)
    write("gemma3", "decoders/gemma3", arch.GEMMA3, edit=gemma_norms, extra=gemma)
    write("phi", "decoders/phi", arch.PHI2)
    write("gpt_neox", "decoders/gpt_neox", arch.GPTNEOX, edit=neox_heads, extra=neox)
    write("gpt2", "hugging_face/tiny", arch.GPT2, edit=gpt2_matrices)
    write("bert", "encoders/states", arch.BERT)
    write("split", "qwen3", arch.QWEN3, split_max_tensors=10)


if __name__ == "__main__":
    main()
