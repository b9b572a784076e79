#!/usr/bin/env python3
"""Classifies images of 224 x 224 pixels with a ViT-B/16 of random weights in xtape and in transformers on PyTorch, alternating.
Prints the least milliseconds of all rounds. usage: vit.py [--program build/tests/vit] [--threads 1,2] [--batch 1,8] [--rounds 3]"""
import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import torch
from transformers import ViTConfig, ViTForImageClassification

from best_of import best_of


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/vit")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    words = parser.parse_args()
    torch.manual_seed(1)
    model = ViTForImageClassification(ViTConfig(num_labels=1000)).eval()
    environment = os.environ | {"XTAPE_MODELS": str(Path(__file__).parents[2] / "models")}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for threads in map(int, words.threads.split(",")):
            torch.set_num_threads(threads)
            for batch in map(int, words.batch.split(",")):
                images = 0.1 * torch.sin(0.37 * torch.arange(batch * 3 * 224 * 224, dtype=torch.float64))
                images = images.reshape(batch, 3, 224, 224).float()
                ours, theirs = [], []
                for _ in range(words.rounds):
                    command = [words.program, folder, str(batch), str(threads), str(words.seconds)]
                    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
                    ours.append(float(printed.split()[0]))
                    with torch.inference_mode():
                        theirs.append(best_of(lambda: model(images), words.seconds))
                        assert abs(model(images).logits[0, 0].item() - float(printed.split()[1])) < 1e-3
                print(f"{threads} threads, {batch} images: xtape {min(ours):.1f} ms, PyTorch {min(theirs):.1f} ms, "
                      f"{min(theirs) / min(ours):.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
