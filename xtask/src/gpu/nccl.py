"""One rank of a job that reduces over all GPUs with NCCL, reports how often it did, and waits for the end of stdin.

Exit status 77: this Python cannot do that; the reason is the last line on stderr.
"""

import json
import os
import sys

CANNOT = 77
CALLS = 8
ELEMENTS = 1 << 20


def main():
    try:
        import torch
        import torch.distributed
    except ImportError as error:
        print(f"{sys.executable} has no PyTorch ({error}): pip install torch, or name a Python with it in TELLTALE_PYTHON",
              file=sys.stderr)
        return CANNOT
    if not torch.cuda.is_available() or not torch.distributed.is_nccl_available():
        print(f"PyTorch {torch.__version__} has no GPU or no NCCL: install its build for CUDA", file=sys.stderr)
        return CANNOT
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    store = "file://" + os.environ["TELLTALE_GPU_STORE"]
    torch.distributed.init_process_group("nccl", init_method=store, rank=rank, world_size=ranks)
    values = torch.ones(ELEMENTS, device=f"cuda:{rank}")
    for _ in range(CALLS):
        torch.distributed.all_reduce(values)
        torch.cuda.synchronize()
    report = {
        "calls": CALLS,
        "nccl": ".".join(str(part) for part in torch.cuda.nccl.version()),
        "torch": torch.__version__,
    }
    # In one piece, and a line of its own: NCCL writes its log to the same place.
    os.write(sys.stdout.fileno(), f"\nnccl: {json.dumps(report)}\n".encode())
    sys.stdin.read()
    torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
