#!/usr/bin/env python3
"""The workloads mamba2-64 and mamba2-256 (workload.cpp) with transformers, in PyTorch alone.
usage: mamba2.py [STEPS] [THREADS] [compile]"""
import resource
import sys
import time

import torch
import torch.nn.functional as F
from transformers import Mamba2Config, Mamba2ForCausalLM

steps, threads = (int(a) for a in (sys.argv[1:3] + ["9", "2"][len(sys.argv[1:3]):]))
torch.set_num_threads(threads)
for chunk_size in 64, 256:
    model = Mamba2ForCausalLM(Mamba2Config(
        vocab_size=256, hidden_size=256, num_hidden_layers=4, state_size=64, head_dim=64, num_heads=8, n_groups=1,
        chunk_size=chunk_size, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=0)).train()
    step = torch.compile(model) if "compile" in sys.argv else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    tokens, targets = (torch.randint(1, 256, (4, 512)) for _ in range(2))
    times = []
    for _ in range(steps + 2):  # two to warm up
        start = time.perf_counter()
        loss = F.cross_entropy(step(tokens, use_cache=False).logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"mamba2-{chunk_size}: {sorted(times[2:])[steps // 2] * 1e3:.1f} ms, peak {peak:.0f} MiB so far")
