"""Allocates with PyTorch's caching allocator on the first GPU, reports what it has reserved, and waits for the end of stdin.

Exit status 77: this Python cannot do that; the reason is the last line on stderr.
"""

import json
import os
import sys

CANNOT = 77
KIB, MIB = 1 << 10, 1 << 20


def main():
    try:
        import torch
    except ImportError as error:
        print(f"{sys.executable} has no PyTorch ({error}): pip install torch, or name a Python with it in TELLTALE_PYTHON",
              file=sys.stderr)
        return CANNOT
    if not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no GPU: install its build for CUDA", file=sys.stderr)
        return CANNOT

    def allocate(size, count):
        return [torch.empty(size, dtype=torch.uint8, device="cuda:0") for _ in range(count)]

    # A small GPU has blocks that fit.
    large = min(256 * MIB, torch.cuda.get_device_properties(0).total_memory // 64)
    kept = allocate(large, 8) + allocate(24 * MIB, 10) + allocate(3 * MIB, 20) + allocate(100 * KIB, 100)
    freed = allocate(large, 4) + allocate(40 * MIB, 4) + allocate(700, 50)
    # Some of it goes back to the driver, and the rest stays in PyTorch's cache.
    del freed
    torch.cuda.empty_cache()
    del kept[::3]
    torch.cuda.synchronize()
    report = {
        "pid": os.getpid(),
        "reserved": torch.cuda.memory_reserved(),
        "allocated": torch.cuda.memory_allocated(),
        "torch": torch.__version__,
    }
    print("memory: " + json.dumps(report), flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
