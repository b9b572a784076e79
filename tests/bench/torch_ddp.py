#!/usr/bin/env python3
"""The workloads of torch_bench.py trained by PyTorch's DistributedDataParallel on gloo, one thread a rank.

usage: torch_ddp.py PATH/TO/torch_bench.py WORKLOAD [--ranks N] [--steps N] [--threads N]

Rank 0 prints one JSON line. Each rank trains on its part of the batch's rows."""
import argparse, importlib.util, json, os, time

os.environ["XTAPE_PEER_CHILD"] = "1"  # so that torch_bench defines its models
import torch, torch.distributed as dist, torch.multiprocessing as processes
import torch.nn.functional as F


def train(rank, a):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", OMP_NUM_THREADS=str(a.threads))
    torch.set_num_threads(a.threads)
    spec = importlib.util.spec_from_file_location("torch_bench", a.bench)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    dist.init_process_group("gloo", rank=rank, world_size=a.ranks)
    torch.manual_seed(0)
    w = bench.WORKLOADS[a.workload]
    model = torch.nn.parallel.DistributedDataParallel(bench.KINDS[w["kind"]](**w).train())
    optimizer = bench.adamw(list(model.parameters()))
    draw = lambda: torch.randint(1, w["V"], (w["B"] // a.ranks, w.get("T", w.get("S"))))
    x, y = draw(), draw()
    times = []
    for _ in range(a.steps + 2):
        dist.barrier()
        start = time.perf_counter()
        logits = model(x) if w["kind"] == "gpt" else model(x, y.roll(1, 1))
        loss = F.cross_entropy(logits.reshape(-1, w["V"]), y.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps(dict(workload=a.workload, peer="torch-ddp-" + torch.__version__, ranks=a.ranks,
                              ms=round(sorted(times[2:])[a.steps // 2] * 1e3, 3), loss=round(loss.item(), 4))), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("bench")
    a.add_argument("workload")
    a.add_argument("--ranks", type=int, default=2)
    a.add_argument("--steps", type=int, default=9)
    a.add_argument("--threads", type=int, default=1)
    a = a.parse_args()
    processes.spawn(train, (a,), nprocs=a.ranks)
