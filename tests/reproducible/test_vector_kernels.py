"""The kernels of `reproducible_vector`, compiled for the host with stand-ins for CUDA: `vector_kernels.cpp`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import ON_HOST, assert_noticed, assert_right, built_with_faults
from support.requirements import mostly_exhaustive
from support.source_tree import ROOT

HERE = Path(__file__).parent
FOLDER = "cuda/kernels/sgemm_reproducible"
VECTOR, ADD, CHAIN = (f"{FOLDER}/{name}" for name in ("sgemm_reproducible_vector.cu", "add_slabs.cuh",
                                                      "chain_of_a_thread.cuh"))  # fmt: skip
PLAN = "cpp/plan/reproducible_plan.h"
SOURCES = (VECTOR, ADD, CHAIN, PLAN, f"{FOLDER}/order.cuh", "cuda/kernels/common/float4.cuh")
NEEDLESS = ("cuda_runtime.h", "cuda/kernels/common/launch.cuh", "cuda/kernels/common/ptx.cuh")
FEWER_SLABS = ("int64_t{32} << 20", "int64_t{1} << 12")  # so that there are groups of them

STAND_INS = r"""
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include "core/context.h"
#include "support/block_on_host.h"
#define __global__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __CUDA_ARCH__ 900
using std::fmaf;
using std::min;
struct alignas(16) float4 { float x, y, z, w; };
inline struct { unsigned x; } blockIdx, gridDim;
uint64_t exchange(uint64_t mine, int lane);
template <class T> T __shfl_sync(unsigned, T mine, int lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, &mine, sizeof(T));
  bits = exchange(bits, lane);
  std::memcpy(&mine, &bits, sizeof(T));
  return mine;
}
float __ldg(const float* from);
float __ldcg(const float* from);
float4 __ldcg(const float4* from);
namespace fl {
constexpr int SHARED_BYTES = 8 * 64 * 36 * 4;
namespace { alignas(128) unsigned char memory[SHARED_BYTES]; }
inline unsigned char* const shared_memory = memory;
inline void pdl_wait() {}
inline void pdl_launch_next() {}
struct LaunchShape { unsigned blocks; int threads, shared_bytes = 0, cluster = 1, most_shared_bytes = 0; };
void run_kernel(unsigned blocks, int threads, int shared_bytes, const std::function<void()>& kernel);
template <auto KERNEL, class... A> void launch_kernel(const LaunchShape& shape, const Context&, const A&... args) {
  run_kernel(shape.blocks, shape.threads, shape.shared_bytes, [&] { KERNEL(args...); });
}
namespace ptx {
uint32_t shared_address(const void*);
float load1(uint32_t from);
float4 load4(uint32_t from);
void copy_async4(uint32_t to, const float* from);
void copy_async16_filled(uint32_t to, const float* from, int bytes);
void commit_copies();
void wait_for_all_but(int latest);
template <int N> void wait_copies() { wait_for_all_but(N); }
}  // namespace ptx
}  // namespace fl
"""


FAULTS = {
    "the last k lost": (VECTOR, "static_cast<int>(k % REPRODUCIBLE_BLOCK)", "static_cast<int>(k % 256 / 4 * 4)"),
    "zeros behind the last k multiplied": (VECTOR, "min(k_of_chain - k, BK)", "BK"),
    "a barrier after the copies left out": (
        VECTOR,
        "__syncwarp();  // all lanes'",
        "if (!SEEDED) __syncwarp();  // all lanes'",
    ),
    "copies not waited for": (VECTOR, "ptx::wait_copies<STAGES - 1>();", "ptx::wait_copies<STAGES>();"),
    "16 bytes read where fewer are": (VECTOR, "min(left, 4) * 4", "16"),
    "16 bytes across segments": (PLAN, "(row.n % 4 == 0 || segments == 1)", "true"),
    "room for too few parts of x": (VECTOR, "(plan.each - 2) / p.n + 2", "(plan.each - 2) / p.n + 1"),
    "beta forgotten for one block": (VECTOR, "BlockUpdate update(p, true)", "BlockUpdate update(p, !SEEDED)"),
    "a column of C as contiguous": (ADD, "row_major(p.c) && aligned16(p.c)", "aligned16(p.c)"),
    "a slab of the workspace too few": (PLAN, "plan.at_a_time * plan.problems * plan.ld", "plan.problems * plan.ld"),
    "problems behind the last": (ADD, "std::min(count, p.batch - first)", "count"),
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """vector_kernels.cpp with all faults."""

    def for_the_host(text: str) -> str:
        return text.replace("extern __shared__", "extern").replace(*FEWER_SLABS)

    assert FEWER_SLABS[0] in (ROOT / PLAN).read_text()
    main, options = HERE / "vector_kernels.cpp", ("-O1", "-w", "-ffp-contract=off", *ON_HOST)
    more = {"empty": NEEDLESS, "edit": for_the_host, "stand_ins": STAND_INS}
    return built_with_faults(tmp_path_factory, main, SOURCES, FAULTS, *options, seconds=120, **more)


@pytest.mark.parametrize("options", mostly_exhaustive(["", "all"]))
def test_one_row_and_one_column_in_order(program, options):
    assert_right(program, 120, *options.split())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 120, fault, FAULTS)
