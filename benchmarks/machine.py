# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a page of results says of the machine that they were measured on."""
import os

FLAGS = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16")


def machine():
    with open("/proc/cpuinfo") as file:
        fields = dict([part.strip() for part in line.split(":", 1)] for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    flags = set(fields.get("flags", "").split())
    return {"cpu": fields.get("model name", "unknown"), "cores": len(os.sched_getaffinity(0)), "flags": [f for f in FLAGS if f in flags],
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}
