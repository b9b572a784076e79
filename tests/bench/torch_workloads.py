#!/usr/bin/env python3
"""The workloads of the benchmark (workloads.cpp) in PyTorch. Prints one JSON line for each, with the same keys.

usage: torch_workloads.py [--only NAME[,NAME]] [--steps N] [--threads N] [--compile] [--bf16]

  --compile  torch.compile
  --bf16     the forward pass under torch.autocast(bfloat16), with float32 weights and moments; in decoding, bfloat16 weights

Each workload runs in a process of its own, so that peak_mb is its own, and with the kernels that the BLAS library
chooses for the processor."""
import argparse, json, os, resource, subprocess, sys, time

CHILD = "XTAPE_BENCHMARK_CHILD"


def train(name, options):
    import torch, torch_models

    model = torch_models.make(name).train()
    compiled = torch.compile(model) if options.compile else model
    optimizer = torch_models.adamw(model)
    tokens, targets = torch_models.batch(name)
    times = []
    for _ in range(options.steps + 2):  # two to warm up
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
            loss = torch_models.loss_of(name, compiled, tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        last = loss.item()
        times.append(time.perf_counter() - start)
    seconds = sorted(times[2:])[options.steps // 2]
    multiplied = sum(w.numel() for w in model.parameters()) - sum(w.numel() for w in model.looked_up)
    rate = targets.numel() / seconds
    return dict(ms=seconds * 1e3, tokens_per_s=rate, gflops=6 * multiplied * rate / 1e9, loss=last)


def decode(name, options):
    """Continues a prompt of 16 tokens greedily, with cached keys and values."""
    import torch, torch_models

    torch.set_grad_enabled(False)
    w = torch_models.WORKLOADS[name]
    model = torch_models.make(name).eval()
    model = model.bfloat16() if options.bf16 else model
    model = torch.compile(model, dynamic=True) if options.compile else model
    past, times = [[] for _ in range(w["layers"])], []
    token = model(torch.randint(w["V"], (1, 16)), 0, past)[:, -1].argmax(-1, keepdim=True)
    for at in range(16, min(16 + 8 * options.steps, w["T"])):
        start = time.perf_counter()
        token = model(token, at, past)[:, -1].argmax(-1, keepdim=True)
        times.append(time.perf_counter() - start)
    seconds = sorted(times)[len(times) // 2]
    return dict(ms=seconds * 1e3, tokens_per_s=1 / seconds, gflops=0.0, loss=0.0)


def report(name, options):
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    figures = (decode if name.endswith("-decode") else train)(name, options)
    peer = "torch-" + torch.__version__ + "-compile" * options.compile + "-bf16" * options.bf16
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {key: round(value, 4) for key, value in figures.items()}
    print(json.dumps(dict(workload=name, peer=peer, peak_mb=round(peak), **figures)), flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--only", default="gpt-char,gpt-baby,gpt2-124m,transformer,gru-attention,lstm-attention,gpt2-124m-decode")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    if CHILD in os.environ:
        return report(options.only, options)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    environment.update({CHILD: "1", "OMP_NUM_THREADS": str(options.threads)})
    switches = ["--compile"] * options.compile + ["--bf16"] * options.bf16
    for name in options.only.split(","):
        command = [sys.executable, __file__, "--only", name, "--steps", str(options.steps), "--threads", str(options.threads)]
        subprocess.run(command + switches, env=environment, check=True)


if __name__ == "__main__":
    main()
