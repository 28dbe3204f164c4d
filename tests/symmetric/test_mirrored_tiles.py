"""The triangle of tiles of a symmetric product on a GPU, and its mirror image: `mirrored_tiles.cpp`.

It runs the kernels' own code, compiled for the host with stand-ins for what that takes from CUDA.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import ON_HOST, assert_noticed, assert_right, built_with_faults

HERE = Path(__file__).parent
KERNELS = "cuda/kernels"
TILES, EPILOGUE = f"{KERNELS}/common/rasterize.cuh", f"{KERNELS}/sgemm_accurate/wgmma/mirrored_epilogue.cuh"
STRICT, PLAN = f"{KERNELS}/sgemm_strict/tile_epilogue.cuh", "cpp/plan/strict/pipelined_plan.h"
SOURCES = (TILES, EPILOGUE, STRICT, PLAN, f"{KERNELS}/common/epilogue.cuh", f"{KERNELS}/common/float4.cuh")
NEEDLESS = ("cuda_runtime.h", *(f"{KERNELS}/{header}" for header in (
    "sgemm_accurate/epilogue.cuh", "common/exchange.cuh", "common/ptx.cuh", "common/inner_loop.cuh",
    "common/ptx_wgmma.cuh")))  # fmt: skip

# What these headers name of CUDA, and of other headers that they include.
STAND_INS = r"""
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include "support/block_on_host.h"
using std::min;
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct int2 { int x, y; };
template <class T> T __ldg(const T* from) { return *from; }
struct CUtensorMap { float* c; int n; int64_t ldc; };
// As inexact as the instruction.
inline float rsqrtf(float x) { return (1 + (std::bit_cast<uint32_t>(x) % 5 - 2.0f) * 0x1p-23f) / std::sqrt(x); }
namespace fl {
struct AccurateEpilogue {
  const int *a_exponents, *b_exponents;
  float* c;
  int64_t ldc;
  int m = 0, n = 0;
  float alpha = 1;
  bool by_boxes = false;
};
inline float power_of_two(int e) { return std::ldexp(1.0f, e); }
inline float scale_wide(float x, int e) { return std::ldexp(x, e); }
namespace ptx {
inline unsigned thread_index() { return threadIdx.x; }
void store1(uint32_t, float);
void store2(uint32_t, float2);
float load1(uint32_t);
void async_proxy_fence();
void store_box(const CUtensorMap*, int col, int row, uint32_t from);
template <int N> void wait_boxes_read();
}  // namespace ptx
template <int> void transpose_fours(float*);  // by what is not called here
}  // namespace fl
"""


FAULTS = {
    "a tile on the diagonal missing": (TILES, "beside - row * (row + 1) / 2", "beside - row * row / 2"),
    "a root that is not corrected": (TILES, "while (row * (row + 1) / 2 > n) --row;", ""),
    "mirrored beside its place": (
        EPILOGUE,
        "store_box(map, row0, col0, mirror())",
        "store_box(map, row0 + SEEDED, col0, mirror())",
    ),
    "above the diagonal too": (EPILOGUE, "row < out.m && col <= row", "row < out.m"),
    "columns that do not exist": (EPILOGUE, "across < out.m && down < across", "down < across"),
    "the scale of the other half": (EPILOGUE, "out.a_exponents + row0 + r + half * 8", "out.a_exponents + row0 + r"),
    "a box that is not swizzled": (EPILOGUE, "column ^ half * 32", "column + half * 32"),
    "boxes that are still under way": (EPILOGUE, "wait_for_boxes<2>();", "wait_for_boxes<4>();"),
    "boxes that TMA does not see": (EPILOGUE, "ptx::async_proxy_fence();", ""),
    "a lane's part of a box lost": (EPILOGUE, "(line ^ 32) + half * 512", "line + half * 512"),
    "a strict tile missing": (TILES, "in_row % (square + 1)", "in_row % (square + 1) / 2 * 2"),
    "a tile of the last square missing": (PLAN, "rest * (squares + 1)", "rest * squares"),
    "strict tiles mirrored in other fours": (STRICT, "place.col + j / 4 * T::LANE_COLS * 4 + j % 4", "place.col + j"),
    "on the diagonal too": (STRICT, "return tile.row * T::BM / T::BN == tile.col;", "return tile.row == tile.col;"),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """mirrored_tiles.cpp with all faults."""
    main, more = HERE / "mirrored_tiles.cpp", {"empty": NEEDLESS, "stand_ins": STAND_INS}
    return built_with_faults(tmp_path_factory, main, SOURCES, FAULTS, "-O1", "-w", *ON_HOST, seconds=60, **more)


def test_one_triangle_makes_the_whole_result(program):
    assert_right(program, 60)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 60, fault, FAULTS)
