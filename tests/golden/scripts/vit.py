#!/usr/bin/env python3
"""Makes vit/: a tiny random ViT with three labels as transformers saves it, images, and what transformers computes.

expected.safetensors has in float64, computed by transformers on the folder's files: images, label, states, logits, loss,
and for each gradient its sums with cos(i) and sin(i) as weights, under the names of the definition. For each image and
preparation, a folder with a preprocessor_config.json, prepared.safetensors has the pixels, of the image processor that
uses Pillow 13. labels.txt has the labels and probabilities of the images with the model, as its pipeline gives them.

vit.py --check PROGRAM has the program xtape write the folder again (xtape export) and compares what transformers finds
there. Needs torch, torchvision and transformers; the tests do not."""
import json, os, shutil, subprocess, sys, tempfile

import numpy as np, torch, torch.nn.functional as F
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil, pipeline
from transformers.image_utils import load_image

from golden import in_data, save
from in_double import in_double

FOLDER = in_data("vit")
MODEL = os.path.join(FOLDER, "model")
SIZE = 24
# Parts of tensor names, and what the definition calls them.
NAMES = {"vit.": "", "patch_embeddings.": "", "layernorm_before": "attention_norm", "layernorm_after": "mlp_norm",
         "layernorm": "norm", "q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "output", "fc1": "up",
         "fc2": "down"}


def make_model():
    torch.manual_seed(7)
    config = ViTConfig(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10, image_size=SIZE,
                       patch_size=8, initializer_range=0.4, id2label={0: "cat", 1: "dog", 2: "tram"},
                       label2id={"cat": 0, "dog": 1, "tram": 2})
    model = ViTForImageClassification(config)
    with torch.no_grad():  # norms and biases not at their start, so that every term shows
        for value in model.parameters():
            if value.dim() == 1:
                value.add_(0.2 * torch.randn_like(value))
    model.save_pretrained(MODEL)


def opened(folder, **options):
    return ViTForImageClassification.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **options)


def our_name(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def sums(gradient):
    i = torch.arange(gradient.numel(), dtype=torch.float64)
    return torch.stack([gradient.flatten() @ torch.cos(i), gradient.flatten() @ torch.sin(i)])


def expect():
    single = torch.float32
    model = opened(MODEL).eval().double()
    with in_double():
        images, label = (torch.randn(3, 3, SIZE, SIZE) * 16).round() / 16, torch.tensor([2, 0, 1])  # short numbers
        logits = model(images).logits
        loss = F.cross_entropy(logits, label)
        loss.backward()
        found = {"images": images.to(single), "label": label, "states": model.vit(images).last_hidden_state.detach(),
                 "logits": logits.detach(), "loss": loss.detach()}
        found |= {"grad." + our_name(key): sums(value.grad) for key, value in model.named_parameters()}
    save(os.path.join(FOLDER, "expected.safetensors"), found)
    print({key: value.tolist() for key, value in found.items() if key in ("logits", "loss")})


IMAGES = ("photo", "grey", "transparent", "palette", "tall", "turned")
PREPARATIONS = {
    "bicubic": dict(size={"height": 30, "width": 17}, resample=3, image_mean=[0.485, 0.456, 0.406],
                    image_std=[0.229, 0.224, 0.225]),
    "cropped": dict(size={"shortest_edge": 26}, resample=3, do_center_crop=True, crop_size={"height": 24, "width": 19}),
    "larger": dict(size={"height": 45, "width": 58}, resample=1, do_normalize=False),
    "padded": dict(size={"height": 19, "width": 31}, do_center_crop=True, crop_size=22, do_rescale=False),
    # The height loses more than twice what the width does, and exactly twice: Pillow has another order of passes.
    "lower": dict(size={"height": 5, "width": 38}, do_normalize=False),
    "twice": dict(size={"height": 5, "width": 37}, do_normalize=False),
    "numbers": dict(do_resize=False, rescale_factor=0.01, image_mean=[1.5, 1, 0.5], image_std=[2, 3, 0.25]),
}


def image(name):
    return os.path.join(FOLDER, name + ".png")


def make_images():
    i, j = np.mgrid[:37, :53]
    waves = [127.5 + 127 * np.sin(i / 3 + k) * np.cos(j * (k + 1) / 5) for k in range(3)]
    pixels = np.stack([*waves, 255 * (i > j)], axis=-1)
    pixels[5:9, 20:40] = 255 * (np.arange(20)[None, :, None] % 2)  # hard edges, where filters overshoot
    pixels = pixels.astype(np.uint8)
    made = {"photo": Image.fromarray(pixels[..., :3]), "grey": Image.fromarray(pixels[..., 0] // 4),
            "transparent": Image.fromarray(pixels)}
    made["tall"] = Image.fromarray(np.concatenate([pixels[:, k:k + 7, :3] for k in range(0, 45, 5)]))
    made["palette"] = Image.fromarray(255 - pixels[..., :3]).quantize(11)
    for name, picture in made.items():
        picture.save(image(name), optimize=True)
    exif = Image.Exif()
    exif[0x112] = 6  # a camera that was held upright
    made["photo"].save(image("turned"), optimize=True, exif=exif)


def prepare():
    processors = {"model": ViTImageProcessorPil(size={"height": SIZE, "width": SIZE})}
    processors |= {name: ViTImageProcessorPil(**options) for name, options in PREPARATIONS.items()}
    prepared = {}
    for name, processor in processors.items():
        processor.save_pretrained(os.path.join(FOLDER, name))
        for picture in IMAGES if name == "model" else IMAGES[:1]:
            pixels = processor(load_image(image(picture)), return_tensors="pt")["pixel_values"]
            prepared[f"{name}.{picture}"] = pixels.float()
    save(os.path.join(FOLDER, "prepared.safetensors"), prepared)
    classify = pipeline("image-classification", MODEL, image_processor=processors["model"])
    with open(os.path.join(FOLDER, "labels.txt"), "w") as file:
        for picture in IMAGES:
            best = classify(image(picture))[0]
            file.write(f"{best['label']}\t{best['score']:.4g}\n")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    make_model()
    expect()
    make_images()
    prepare()


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    images = torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(3))
    with tempfile.TemporaryDirectory() as made:
        written = os.path.join(made, "written")
        subprocess.run([program, "export", MODEL, written], check=True, stdout=subprocess.DEVNULL)
        model, info = opened(written, output_loading_info=True)
        equal = torch.equal(model.eval()(images)[0], opened(MODEL).eval()(images)[0])
        wrong = {key: list(names) for key, names in info.items() if names}
        with open(os.path.join(written, "config.json")) as file:
            words = json.load(file)
        print(f"{words['architectures']}, {words.get('id2label')}, loading: {wrong or 'nothing missing or surplus'}, "
              f"logits identical: {equal}")
        if not equal or wrong:
            sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
