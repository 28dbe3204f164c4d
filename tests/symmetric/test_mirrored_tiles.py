"""The triangle of tiles of a symmetric product on a GPU, and its mirror image: `mirrored_tiles.cpp`.

It runs the kernels' own code, compiled for the host with stand-ins for what that takes from CUDA.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cpp_program import build, run
from support.source_tree import ROOT

HERE = Path(__file__).parent
KERNELS = "cuda/kernels"
TILES, EPILOGUE = "common/rasterize.cuh", "sgemm_accurate/mirrored_epilogue.cuh"
STRICT, PLAN = "sgemm_strict/tile_epilogue.cuh", "plan/strict_plan.h"
OTHERS = ("common/epilogue.cuh", "common/float4.cuh")

# What these headers name of CUDA, and of other headers that they include.
STAND_INS = r"""
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#define __device__
#define __forceinline__ inline
using std::min;
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct int2 { int x, y; };
template <class T> T __ldg(const T* from) { return *from; }
inline struct { int x; } threadIdx;
inline void __syncwarp() {}
// As inexact as the instruction.
inline float rsqrtf(float x) { return (1 + (std::bit_cast<uint32_t>(x) % 5 - 2.0f) * 0x1p-23f) / std::sqrt(x); }
namespace fl {
struct AccurateEpilogue {
  const int *a_exponents, *b_exponents;
  float* c;
  int64_t ldc;
  int m = 0, n = 0;
  float alpha = 1;
};
inline float power_of_two(int e) { return std::ldexp(1.0f, e); }
inline float scale_wide(float x, int e) { return std::ldexp(x, e); }
inline unsigned thread_again() { return threadIdx.x; }
namespace ptx {  // by what is not called here
template <class... A> float load1(A...);
template <class... A> float4 load4(A...);
template <class... A> uint32_t address_in(A...);
template <class... A> void store4(A...);
template <class... A> void store4_cluster(A...);
template <class... A> void store4_counted(A...);
template <class... A> void barrier_init(A...);
template <class... A> void barrier_expect(A...);
template <class... A> void barrier_wait_for_cluster(A...);
void barrier_init_fence();
void cluster_arrive();
void cluster_wait();
template <int, int> void named_barrier();
}  // namespace ptx
}  // namespace fl
"""


def verdict(folder: Path, name: str = "", right: str = "", wrong: str = ""):
    """Compiles and runs mirrored_tiles.cpp, with `wrong` for `right` in the header `name`."""
    for header in (TILES, EPILOGUE, STRICT, PLAN, *OTHERS):
        source = Path("cpp" if header == PLAN else KERNELS) / header
        place = folder / (header if header == PLAN else source)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / source).read_text()
        if header == name:
            assert text.count(right) == 1, f"{name} has changed: {right}"
            text = text.replace(right, wrong)
        place.write_text(text)
    (folder / "stand_ins.h").write_text(STAND_INS)
    for empty in ("cuda_runtime.h", f"{KERNELS}/sgemm_accurate/epilogue.cuh", f"{KERNELS}/common/ptx_cluster.cuh"):
        (folder / empty).write_text("")
    (folder / KERNELS / "common/tiles.cuh").write_text('#include "cuda/kernels/common/epilogue.cuh"\n')
    program = folder / "mirrored_tiles"
    includes = (f"-I{folder}", f"-I{ROOT / 'cpp'}")
    build(program, ROOT / "cuda", "-O1", "-w", *includes, HERE / "mirrored_tiles.cpp", seconds=60)
    return run(program, 60)


def test_one_triangle_makes_the_whole_result(tmp_path):
    done = verdict(tmp_path)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


FAULTS = {
    "a tile on the diagonal missing": (TILES, "beside - row * (row + 1) / 2}", "beside - row * row / 2}"),
    "bands of other sizes": (TILES, "rows = min(band, tile_rows - first);", "rows = band;"),
    "a root that is not corrected": (TILES, "while (row * (row + 1) / 2 > n) --row;", ""),
    "mirrored beside its place": (EPILOGUE, "*mirror = x.x;", "mirror[1] = x.x;"),
    "the diagonal not stored": (EPILOGUE, "col > row) return;", "col >= row) return;"),
    "above the diagonal too": (EPILOGUE, "row >= out.m || col > row", "row >= out.m"),
    "rows that do not exist": (EPILOGUE, "row >= out.m || col > row", "col > row"),
    "the columns of the next row": (EPILOGUE, "if (col < row) mirror[out.ldc]", "if (col <= row) mirror[out.ldc]"),
    "the scale of the other half": (EPILOGUE, "result(y[0], down[1] + across.x)", "result(y[0], down[0] + across.x)"),
    "a strict tile missing": (TILES, "in_row % (square + 1)};", "in_row % (square + 1) / 2 * 2};"),
    "a tile of the last square missing": (PLAN, "+ rest * (squares + 1);", "+ rest * squares;"),
    "strict tiles mirrored beside their place": (STRICT, "c + i * T::LANE_ROWS;", "c + i * T::LANE_ROWS + 1;"),
    "strict tiles mirrored in other fours": (STRICT, "place.col + j / 4 * T::LANE_COLS * 4 + j % 4;", "place.col + j;"),
    "strict rows that do not exist": (STRICT, "row < at.rows ? at.cols - place.row - i * T::LANE_ROWS : 0", "4"),
    "on the diagonal too": (STRICT, "return tile.row * T::BM / T::BN == tile.col;", "return tile.row == tile.col;"),
    "a band lost": (EPILOGUE, "if (col0 + j * 8 < row0 + 16)", "if (col0 + j * 8 < row0)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, tmp_path):
    done = verdict(tmp_path, *FAULTS[fault])
    assert done.returncode != 0, done.stdout + done.stderr
