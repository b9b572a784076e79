#!/usr/bin/env python3
"""Opens networks that PyTorch has exported, and compares them with PyTorch: the networks of torchvision and transformers below, at
small sizes with random weights, by both exporters. For each: the outputs (within 1e-5 of the largest), the gradients of inputs and of
the weights that the file has under the same names (within 1e-4), the loss after a training step, and the file that is written back, in
ONNX Runtime. Prints a line for each, and the counts; --table writes the lines as Markdown.

usage: exported_networks.py [--table FILE] [PATTERN]   Needs torch, torchvision, transformers, onnx, onnxscript, onnxruntime and xtape.py
(PYTHONPATH, XTAPE_LIBRARY: docs/how_to/python.md)."""
import argparse, collections, ctypes, fnmatch, pathlib, tempfile, warnings

import numpy, onnx, onnxruntime, torch, torch.nn as nn, torchvision.models as tv
import transformers as tf
import xtape

warnings.simplefilter("ignore")
SIZES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, vocab_size=40, pad_token_id=0,
             max_position_embeddings=32, bos_token_id=1, eos_token_id=2)
GPT = dict(n_embd=16, n_layer=2, n_head=2, n_positions=32, vocab_size=40, bos_token_id=1, eos_token_id=2)
PAIRS = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
             decoder_ffn_dim=24, vocab_size=40, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             decoder_start_token_id=1, forced_eos_token_id=2)


class Call(nn.Module):
    """A model of transformers, with positional inputs and one output."""

    def __init__(self, model, names, options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), **self.options, return_dict=False)[0]


def image(make, size=64, **options):
    return lambda: (make(num_classes=7, **options), (torch.randn(2, 3, size, size),))



def ids(*shape):
    return torch.randint(3, 40, shape)


def text(kind, name, sizes=SIZES, more=None, **options):
    """A network that reads ids."""
    def make():
        config = getattr(tf, name + "Config")(**{**sizes, **(more or {})})
        config._attn_implementation = "eager"
        return Call(getattr(tf, name + kind)(config), ["input_ids"], options), (ids(2, 6),)
    return make


def causal(name, sizes=SIZES, kind="ForCausalLM", **more):
    """A language model, which reads ids and their mask."""
    def make():
        network, _ = text(kind, name, sizes, more, use_cache=False)()
        network.names = ["input_ids", "attention_mask"]
        mask = torch.ones(2, 6, dtype=torch.int64)
        mask[1, -2:] = 0
        return network, (ids(2, 6), mask)
    return make


def pair(name, sizes=PAIRS, **more):
    def make():
        config = getattr(tf, name + "Config")(**{**sizes, **more})
        config._attn_implementation = "eager"
        model = getattr(tf, {"Marian": "MarianMTModel"}.get(name, name + "ForConditionalGeneration"))(config)
        return Call(model, ["input_ids", "decoder_input_ids"], {"use_cache": False}), (ids(2, 6), ids(2, 4))
    return make


def pixels(name, kind="Model", size=32, **more):
    def make():
        config = getattr(tf, name + "Config")(**more)
        config._attn_implementation = "eager"
        return Call(getattr(tf, name + kind)(config), ["pixel_values"], {}), (torch.randn(2, 3, size, size),)
    return make


def frames(make):
    """A network that reads four frames."""
    return lambda: (make(), (torch.randn(2, 3, 4, 16, 16),))


VISION = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
KEYS, UNTRAINED = dict(num_key_value_heads=1), dict(weights=None, weights_backbone=None)
NETWORKS = {
    "squeezenet1_1": image(tv.squeezenet1_1), "resnet18": image(tv.resnet18, 32),
    "bottlenecks": image(tv.ResNet, 32, block=tv.resnet.Bottleneck, layers=[1, 1, 1, 1]),
    "resnext": image(tv.ResNet, 32, block=tv.resnet.Bottleneck, layers=[1, 1, 1, 1], groups=8, width_per_group=8),
    "mobilenet_v2": image(tv.mobilenet_v2, 32), "mobilenet_v3_small": image(tv.mobilenet_v3_small, 32),
    "shufflenet_v2_x0_5": image(tv.shufflenet_v2_x0_5, 32), "mnasnet0_5": image(tv.mnasnet0_5, 32),
    "efficientnet_b0": image(tv.efficientnet_b0, 32), "densenet121": image(tv.densenet121, 32),
    "googlenet": image(tv.googlenet, aux_logits=False, init_weights=False), "regnet_x_400mf": image(tv.regnet_x_400mf, 32),
    "regnet_y_400mf": image(tv.regnet_y_400mf, 32), "convnext": image(tv.ConvNeXt, 32, block_setting=[tv.convnext.CNBlockConfig(8, 16, 1), tv.convnext.CNBlockConfig(16, None, 1)]),
    "vit": image(tv.VisionTransformer, 32, image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=24),
    "swin": image(tv.SwinTransformer, 32, patch_size=[4, 4], embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=[4, 4]),
    "deeplabv3_mobilenet": lambda: (First(tv.segmentation.deeplabv3_mobilenet_v3_large(num_classes=3, **UNTRAINED)),
                                    (torch.randn(2, 3, 64, 64),)),
    "lraspp_mobilenet": lambda: (First(tv.segmentation.lraspp_mobilenet_v3_large(num_classes=3, **UNTRAINED)),
                                 (torch.randn(2, 3, 64, 64),)),
    "fcn_resnet50": lambda: (First(tv.segmentation.fcn_resnet50(num_classes=3, **UNTRAINED)), (torch.randn(2, 3, 32, 32),)),
    "alexnet": image(tv.alexnet), "inception_v3": image(tv.inception_v3, 96, aux_logits=False, init_weights=False),
    "wide_resnet": image(tv.ResNet, 32, block=tv.resnet.Bottleneck, layers=[1, 1, 1, 1], width_per_group=128),
    "efficientnet_v2_s": image(tv.efficientnet_v2_s, 32),
    "maxvit": image(tv.MaxVit, 32, input_size=(32, 32), stem_channels=8, partition_size=2, block_channels=[8, 16], block_layers=[1, 1],
                    head_dim=4, stochastic_depth_prob=0.0),
    "swin_v2": image(tv.SwinTransformer, 32, patch_size=[4, 4], embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=[4, 4],
                     block=tv.swin_transformer.SwinTransformerBlockV2, downsample_layer=tv.swin_transformer.PatchMergingV2),
    "r3d": frames(lambda: tv.video.VideoResNet(tv.video.resnet.BasicBlock, [tv.video.resnet.Conv3DSimple] * 4, [1, 1, 1, 1],
                                               tv.video.resnet.BasicStem, num_classes=5)),
    "r2plus1d": frames(lambda: tv.video.VideoResNet(tv.video.resnet.BasicBlock, [tv.video.resnet.Conv2Plus1D] * 4, [1, 1, 1, 1],
                                                    tv.video.resnet.R2Plus1dStem, num_classes=5)),
    "swin3d": frames(lambda: tv.video.SwinTransformer3d([2, 4, 4], 8, [1, 1], [2, 2], [2, 4, 4], num_classes=5)),
    "bert": text("Model", "Bert"), "roberta": text("Model", "Roberta"), "electra": text("Model", "Electra", more=dict(embedding_size=16)),
    "albert": text("Model", "Albert", more=dict(embedding_size=8)), "mpnet": text("Model", "MPNet"),
    "distilbert": text("Model", "DistilBert", dict(dim=16, hidden_dim=24, n_layers=2, n_heads=2, vocab_size=40)),
    "deberta_v2": text("Model", "DebertaV2"), "xlm_roberta": text("Model", "XLMRoberta"), "ernie": text("Model", "Ernie"),
    "roformer": text("Model", "RoFormer", more=dict(embedding_size=16)), "nystromformer": text("Model", "Nystromformer"),
    "modernbert": text("Model", "ModernBert"),
    "camembert": text("Model", "Camembert"), "megatron_bert": text("Model", "MegatronBert"), "deberta": text("Model", "Deberta"),
    "mobilebert": text("Model", "MobileBert", more=dict(embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16)),
    "squeezebert": text("Model", "SqueezeBert", more=dict(embedding_size=16, q_groups=1, k_groups=1, v_groups=1, post_attention_groups=1,
                                                          intermediate_groups=1, output_groups=1)),
    "funnel": text("BaseModel", "Funnel", dict(vocab_size=40, block_sizes=[1, 1], num_decoder_layers=1, d_model=16, n_head=2, d_head=8,
                                               d_inner=24)),
    "layoutlm": text("Model", "LayoutLM"), "fnet": text("Model", "FNet"), "convbert": text("Model", "ConvBert", more=dict(embedding_size=16)),
    "flaubert": text("Model", "Flaubert", dict(emb_dim=16, n_layers=2, n_heads=2, vocab_size=40, n_words=40)),
    "xlm": text("Model", "XLM", dict(emb_dim=16, n_layers=2, n_heads=2, vocab_size=40, n_words=40)),
    "xlnet": text("Model", "XLNet", dict(d_model=16, n_layer=2, n_head=2, d_inner=24, vocab_size=40)),
    "rembert": text("Model", "RemBert", more=dict(input_embedding_size=16, output_embedding_size=16)),
    "data2vec_text": text("Model", "Data2VecText"), "esm": text("Model", "Esm", more=dict(position_embedding_type="rotary")),
    "splinter": text("Model", "Splinter"), "bert_generation": text("Encoder", "BertGeneration"), "ibert": text("Model", "IBert"),
    "roc_bert": text("Model", "RoCBert", more=dict(pronunciation_vocab_size=10, shape_vocab_size=10, enable_pronunciation=False,
                                                   enable_shape=False)),
    "roberta_prelayernorm": text("Model", "RobertaPreLayerNorm"),
    "luke": text("Model", "Luke", more=dict(entity_vocab_size=10, entity_emb_size=8)),
    "gpt2": causal("GPT2", GPT, "LMHeadModel"), "gptj": causal("GPTJ", GPT, rotary_dim=4),
    "gpt_neox": causal("GPTNeoX"), "opt": causal("OPT", ffn_dim=24, word_embed_proj_dim=16),
    "bloom": causal("Bloom", dict(hidden_size=16, n_layer=2, n_head=2, vocab_size=40)),
    "codegen": causal("CodeGen", GPT, rotary_dim=4), "llama": causal("Llama", **KEYS), "mistral": causal("Mistral", **KEYS),
    "qwen2": causal("Qwen2", **KEYS), "qwen3": causal("Qwen3", head_dim=8, **KEYS), "gemma": causal("Gemma", head_dim=8, **KEYS),
    "gemma2": causal("Gemma2", head_dim=8, **KEYS), "phi": causal("Phi"), "phi3": causal("Phi3", **KEYS),
    "stablelm": causal("StableLm", **KEYS), "olmo": causal("Olmo"), "olmo2": causal("Olmo2"), "granite": causal("Granite", **KEYS),
    "gpt_neo": causal("GPTNeo", dict(hidden_size=16, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=2, vocab_size=40,
                                     max_position_embeddings=32, bos_token_id=1, eos_token_id=2)),
    "falcon": causal("Falcon"), "helium": causal("Helium", head_dim=8, **KEYS),
    "starcoder2": causal("Starcoder2", **KEYS), "cohere": causal("Cohere", **KEYS), "smollm3": causal("SmolLM3", **KEYS),
    "t5": pair("T5", dict(d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, vocab_size=40, decoder_start_token_id=0)),
    "bart": pair("Bart"), "mbart": pair("MBart"), "pegasus": pair("Pegasus"), "marian": pair("Marian"),
    "vit_hf": pixels("ViT", **VISION), "deit": pixels("DeiT", **VISION), "beit": pixels("Beit", **VISION), "dinov2": pixels("Dinov2", **VISION), "vit_msn": pixels("ViTMSN", **VISION),
    "clip_vision": pixels("CLIPVision", **VISION), "siglip_vision": pixels("SiglipVision", **VISION),
    "resnet_hf": pixels("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
    "convnext_hf": pixels("ConvNext", num_stages=2, hidden_sizes=[8, 16], depths=[1, 1]),
    "segformer": pixels("Segformer", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3],
                        strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2]),
    "mlp_mixer": lambda: (nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.Flatten(2), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Flatten(),
                                        nn.Linear(128, 7)), (torch.randn(2, 3, 32, 32),)),
}


class First(nn.Module):
    """A model with a dictionary of outputs, of which the first counts."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def differs(ours, theirs, most, least=1e-3):
    """Whether the largest difference is above `most` of the largest element, or of `least` if that is larger."""
    theirs = theirs.detach().numpy()
    return ours.shape != theirs.shape or not numpy.abs(ours - theirs).max(initial=0) <= most * max(least, numpy.abs(theirs).max(initial=0))


def least_of(gradients):
    """Some gradients are 0, such as that of the bias of attention's keys. What is computed for them is rounding."""
    return 1e-3 * max((float(each.abs().max()) for each in gradients), default=1)


def same_weights(network, weights):
    """The parameters that the file has under the same name and with the same values, and no other copy of."""
    arrays = {name: weights[name] for name in weights}
    for name, parameter in network.named_parameters():
        value = parameter.detach().numpy()
        copies = sum(each.size == value.size and numpy.array_equal(numpy.sort(each, None), numpy.sort(value, None)) for each in arrays.values())
        if name in arrays and numpy.array_equal(arrays[name], value) and copies == 1 and parameter.grad is not None:
            yield name, parameter.grad


def gradient_graph(tape, path, gradients, inputs, wanted):
    """Writes the gradients as an ONNX file, and says how ONNX Runtime computes them."""
    if not gradients:
        return "as no weight has its own name"
    names = (ctypes.c_char_p * len(gradients))(*[f"gradient{i}".encode() for i in range(len(gradients))])
    listed = (type(gradients[0].raw) * len(gradients))(*[each.raw for each in gradients])
    try:
        xtape._call("onnx_save", tape.handle, path.encode(), names, listed, len(gradients), b'{"opset": 20}')
        session = onnxruntime.InferenceSession(path)
        given = {f"x{i}": x for i, x in enumerate(inputs)}
        found = session.run(None, {each.name: given[each.name] for each in session.get_inputs()})
    except Exception as error:
        return f"but not as an ONNX graph: {type(error).__name__}: " + " ".join(str(error).split())[:110]
    wrong = sum(differs(ours, theirs, 1e-4, least_of(wanted)) for ours, theirs in zip(found, wanted))
    return f"but {wrong} differ in ONNX Runtime" if wrong else "in ONNX Runtime too"


def examine(network, inputs, exporter, path):
    """What is compared, as words. Throws where something is refused or differs."""
    options = dict(external_data=False, verbose=False) if exporter == "dynamo" else dict(opset_version=17)
    torch.onnx.export(network, inputs, path, dynamo=exporter == "dynamo", input_names=[f"x{i}" for i in range(len(inputs))], **options)
    inputs = tuple(x.requires_grad_() if x.is_floating_point() else x for x in inputs)
    output = network(*inputs)
    along = torch.randn(output.shape)
    (output * along).sum().backward()

    model = xtape.Model(path)  # what follows is xtape's
    tape = xtape.Tape(mode="eval")
    recorded = model.inputs(tape)
    y = model.record(tape, None, *recorded)
    y = y[0] if isinstance(y, tuple) else y
    weights = model.weights
    named = dict(same_weights(network, weights))
    floats = [(var, x) for var, x in zip(recorded, inputs) if x.is_floating_point()]
    wanted = [x.grad for _, x in floats] + list(named.values())
    gradients = xtape.grad(y, [var for var, _ in floats] + [tape.parameter(weights, name) for name in named],
                           tape.constant(along.numpy()), materialize_grads=True)
    feeds = {var: x.detach().numpy() for var, x in zip(recorded, inputs)}
    found = xtape.Player([y, *gradients])(feeds)
    assert not differs(found[0], output, 1e-5), f"outputs differ by {numpy.abs(found[0] - output.detach().numpy()).max():.1e}"
    wrong = [f"{name} by {numpy.abs(ours - theirs.numpy()).max() / numpy.abs(theirs.numpy()).max():.1e}" for name, ours, theirs
             in zip(["input"] * len(floats) + list(named), found[1:], wanted) if differs(ours, theirs, 1e-4, least_of(wanted))]
    assert not wrong, f"{len(wrong)} gradients of {len(wanted)} differ: {wrong[0]}"
    in_graph = gradient_graph(tape, path + ".gradients.onnx", gradients, [x.detach().numpy() for x in inputs], wanted)
    # Exporters write numbers such as the exponent of a power as initialisers, too; they have no axes.
    trained_weights = xtape.Store({each: weights.array(each) for each in weights if weights[each].ndim > 0})
    step = xtape.Step((y * y).mean(), trained_weights, optimizer={"kind": "adam"}, schedule=1e-5)
    losses = [step(feeds) for _ in range(3)]
    assert losses[2] < losses[0], f"the loss rises from {losses[0]} to {losses[2]}"
    trained = xtape.Player([y])(feeds)[0].copy()
    model.save(path + ".trained.onnx")
    session = onnxruntime.InferenceSession(path + ".trained.onnx")
    again = session.run(None, {given.name: x.detach().numpy() for given, x in zip(session.get_inputs(), inputs)})[0]
    assert not differs(again, torch.from_numpy(trained), 1e-4), "the file that is written back differs in ONNX Runtime"
    return f"{len(wanted)} gradients agree, {in_graph}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--table")
    arguments = parser.parse_args()
    lines, counts = [], collections.Counter()
    for name, make in NETWORKS.items():
        for exporter in ("script", "dynamo"):
            if not fnmatch.fnmatch(f"{name}_{exporter}", arguments.pattern):
                continue
            torch.manual_seed(1)
            outcome, words = "agrees", ""
            with tempfile.TemporaryDirectory() as folder:
                try:
                    network, inputs = make()
                    network.eval()
                    for parameter in network.parameters():  # biases and norms start at 0 and 1, which would hide errors
                        parameter.data += torch.randn_like(parameter) * 0.02
                    words = examine(network, inputs, exporter, str(pathlib.Path(folder) / "model.onnx"))
                except xtape.Error as error:
                    outcome, words = "refused", str(error).split("\n")[0][:160]
                except AssertionError as error:
                    outcome, words = "differs", str(error)[:160]
                except Exception as error:  # of the exporter
                    outcome, words = "not exported", f"{type(error).__name__}: {error}".split("\n")[0][:120]
            counts[outcome] += 1
            lines.append((name, exporter, outcome, words))
            print(f"{name:20} {exporter:7} {outcome}: {words}", flush=True)
    if arguments.table:
        rows = "".join(f"| {name} | {exporter} | {outcome} | {words.replace('|', '/')} |\n" for name, exporter, outcome, words in lines)
        pathlib.Path(arguments.table).write_text("| network | exporter | outcome | |\n|---|---|---|---|\n" + rows)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))


if __name__ == "__main__":
    main()
