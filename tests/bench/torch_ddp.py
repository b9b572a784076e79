#!/usr/bin/env python3
"""The workloads of torch_models.py trained by PyTorch's DistributedDataParallel on gloo, one thread a rank.

usage: torch_ddp.py WORKLOAD [--ranks N] [--steps N] [--threads N]

Rank 0 prints one JSON line. Each rank trains on its part of the batch's rows."""
import argparse, json, os, time

import torch, torch.distributed as dist, torch.multiprocessing as processes

import torch_models


def train(rank, a):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", OMP_NUM_THREADS=str(a.threads))
    torch.set_num_threads(a.threads)
    dist.init_process_group("gloo", rank=rank, world_size=a.ranks)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch_models.make(a.workload).train())
    optimizer = torch_models.adamw(model)
    tokens, targets = torch_models.batch(a.workload, torch_models.WORKLOADS[a.workload]["B"] // a.ranks)
    times = []
    for _ in range(a.steps + 2):
        dist.barrier()
        start = time.perf_counter()
        loss = torch_models.loss_of(a.workload, model, tokens, targets)
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
    a.add_argument("workload")
    a.add_argument("--ranks", type=int, default=2)
    a.add_argument("--steps", type=int, default=9)
    a.add_argument("--threads", type=int, default=1)
    a = a.parse_args()
    processes.spawn(train, (a,), nprocs=a.ranks)
