#include "transfer.h"

#include <array>
#include <climits>
#include <cstdlib>

#include "check.h"

namespace fl::cuda {
namespace {

constexpr int64_t capacity = int64_t(StagingRing::chunk_bytes / sizeof(float));
constexpr std::size_t bytes(int64_t floats) { return std::size_t(floats) * sizeof(float); }

// ---------------------------------------------------------------- pinned host memory, copied from where it is
// Below this the question whether memory is pinned costs as much as staging it.
constexpr int64_t direct_floats = 64 * 1024 / sizeof(float);
// Two-dimensional copies lose speed with shorter rows.
constexpr int64_t direct_line = 1024 / sizeof(float);

bool is_pinned(const void* host) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, host) == cudaSuccess) return attributes.type == cudaMemoryTypeHost;
  static_cast<void>(cudaGetLastError());
  return false;
}

// The operand as one two-dimensional copy, lines in memory order and apart from each other.
template <class T>
bool direct(const Lines<T>& host) {
  const int64_t pitch = host.line_stride;
  if (host.step != 1 || host.total() * host.length < direct_floats) return false;
  if (host.batch > 1 && host.bs != host.lines * pitch) return false;
  const bool lines_apart = pitch >= host.length && bytes(pitch) <= INT_MAX && bytes(host.ld) <= INT_MAX;
  if (host.total() > 1 && (host.length < direct_line || !lines_apart)) return false;
  return is_pinned(host.data) && is_pinned(host.data + (host.total() - 1) * pitch + host.length - 1);
}

template <class T>
void copy_direct(const Lines<T>& host, void* to, int64_t to_pitch, const void* from, int64_t from_pitch,
                 cudaStream_t stream) {
  if (host.total() == 1) FL_CUDA(cudaMemcpyAsync(to, from, bytes(host.length), cudaMemcpyDefault, stream));
  else
    FL_CUDA(cudaMemcpy2DAsync(to, bytes(to_pitch), from, bytes(from_pitch), bytes(host.length),
                              std::size_t(host.total()), cudaMemcpyDefault, stream));
}

// ---------------------------------------------------------------- ordinary host memory, through the ring
int64_t device_offset(const Piece& piece, int64_t ld) { return piece.first * ld + piece.from; }

// What is sent of a packed piece: also the padding behind its last line, whatever is in it. A kernel may ask for 16 bytes
// there and say that it wants fewer; a checker of uninitialised memory counts all of them.
int64_t sent_size(const Piece& piece, const Lines<const float>& host) {
  const bool ends_line = piece.from + piece.length == host.length;
  const int64_t size = packed_size(piece, host.ld) + (ends_line ? host.ld - host.length : 0);
  return size < capacity ? size : capacity;
}

}  // namespace

void upload(const Lines<const float>& host, float* device, StagingRing& ring, cudaStream_t stream) {
  if (host.empty()) return;
  if (direct(host)) return copy_direct(host, device, host.ld, host.data, host.line_stride, stream);
  const Pieces pieces(host, capacity);
  for (int64_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces[i];
    Chunk& chunk = ring.next();
    pack(host, piece, static_cast<float*>(chunk.data));
    FL_CUDA(cudaMemcpyAsync(device + device_offset(piece, host.ld), chunk.data, bytes(sent_size(piece, host)),
                            cudaMemcpyHostToDevice, stream));
    FL_CUDA(cudaEventRecord(chunk.copied, stream));
  }
}

void download(const float* device, const Lines<float>& host, StagingRing& ring, cudaStream_t stream) {
  if (host.empty()) return;
  if (direct(host)) return copy_direct(host, host.data, host.line_stride, device, host.ld, stream);
  constexpr int64_t slots = StagingRing::slots;
  std::array<Chunk*, slots> in_flight{};
  const Pieces pieces(host, capacity);
  // Copies run up to `slots` pieces ahead of the unpacking. A piece is unpacked before its chunk comes round again.
  for (int64_t i = 0; i < pieces.count() + slots; ++i) {
    Chunk*& chunk = in_flight[std::size_t(i % slots)];
    if (const int64_t done = i - slots; done >= 0 && done < pieces.count()) {
      FL_CUDA(cudaEventSynchronize(chunk->copied));
      unpack(static_cast<const float*>(chunk->data), host, pieces[done]);
    }
    if (i >= pieces.count()) continue;
    const Piece piece = pieces[i];
    chunk = &ring.next();
    FL_CUDA(cudaMemcpyAsync(chunk->data, device + device_offset(piece, host.ld), bytes(packed_size(piece, host.ld)),
                            cudaMemcpyDeviceToHost, stream));
    FL_CUDA(cudaEventRecord(chunk->copied, stream));
  }
}

bool download_reads_padding(const Lines<float>& host) {
  return host.ld != host.length && host.ld <= capacity && host.total() > 1;
}

}  // namespace fl::cuda
