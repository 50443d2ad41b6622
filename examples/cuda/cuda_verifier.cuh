// SPDX-License-Identifier: Apache-2.0
#pragma once

// A verifier whose logits stay on the GPU: argmax and walk run there, and one small copy brings the path to the host.
// self_test.cu ran it on an NVIDIA H100.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "reprise/reprise.hpp"
#include "walk.hpp"

namespace cuda_example {

inline constexpr int threads = 256;  // of a block, a power of two

/// Writes picks[r] = argmax of row r of `logits`. One block for each row.
__global__ void pick_rows(const float* logits, std::int32_t vocabulary, std::int32_t* picks) {
  __shared__ float scores[threads];
  __shared__ std::int32_t tokens[threads];
  const float* row = logits + static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(vocabulary);
  const int me = static_cast<int>(threadIdx.x);
  float score = 0;
  std::int32_t best = -1;
  for (std::int32_t token = me; token < vocabulary; token += threads)
    if (wins(row[token], token, score, best)) score = row[best = token];
  scores[me] = score;
  tokens[me] = best;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me < half && wins(scores[me + half], tokens[me + half], scores[me], tokens[me])) {
      scores[me] = scores[me + half];
      tokens[me] = tokens[me + half];
    }
  }
  if (me == 0) picks[blockIdx.x] = tokens[0] < 0 ? 0 : tokens[0];
}

/// Walks one draft with one thread: a draft has tens of rows. `tree` holds the drafted tokens, then the parents.
/// out[0].row is the number of steps, which follow it.
__global__ void walk_draft(const std::int32_t* tree, std::int32_t drafted, std::int32_t anchor_row,
                           const std::int32_t* picks, Step* out) {
  out[0] = {walk(tree, tree + drafted, drafted, anchor_row, picks, out + 1), 0};
}

/// Frees memory of the device, or pinned memory of the host.
struct FreeDevice {
  void operator()(void* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
};
struct FreePinned {
  void operator()(void* memory) const noexcept { static_cast<void>(cudaFreeHost(memory)); }
};

/// An engine of one sequence, over a model with these members:
///
///  * `std::int32_t vocabulary() const`
///  * `const float* logits(batch, drafted, parents, stream)` runs the batch on this stream. It returns device memory
///    with drafted + 1 rows of logits, from the anchor's row on, valid until the next call; nullptr if it failed.
///  * `void keep(std::span<const std::size_t> rows)` keeps these rows of the last batch.
///  * `reprise::Capabilities capabilities() const`
///
/// Copies wait for the stream once per pass. Picks are greedy.
template <class Model>
class CudaVerifier {
 public:
  /// `most_drafted` is the largest draft of a pass. Errors: out_of_memory.
  static reprise::Result<CudaVerifier> make(Model model, std::size_t most_drafted, cudaStream_t stream) {
    CudaVerifier made(std::move(model), most_drafted, stream);
    const std::size_t tree = 2 * most_drafted * sizeof(std::int32_t) + 1;  // a draft may be empty
    const std::size_t picks = (most_drafted + 1) * sizeof(std::int32_t);
    const std::size_t steps = (most_drafted + 2) * sizeof(Step);
    if (on_device(made.tree_, tree) && on_device(made.picks_, picks) && on_device(made.steps_, steps) &&
        pinned(made.host_tree_, tree) && pinned(made.host_picks_, picks) && pinned(made.host_steps_, steps))
      return made;
    return reprise::Error{reprise::ErrorCode::out_of_memory,
                          "the GPU has no memory for the walk: free some, or choose a smaller draft"};
  }

  [[nodiscard]] reprise::Capabilities capabilities() const { return model_.capabilities(); }
  Model& model() { return model_; }

  /// V1 to V3 and V6: needed by tools that read picks. generate() calls verify_and_walk() instead.
  reprise::Result<reprise::TokenSpan> verify(reprise::TokenSpan batch, std::size_t drafted) {
    chain_.resize(drafted);
    for (std::size_t row = 0; row < drafted; ++row) chain_[row] = static_cast<reprise::NodeIndex>(row) - 1;
    return verify_tree(batch, drafted, chain_);
  }
  reprise::Result<reprise::TokenSpan> verify_tree(reprise::TokenSpan batch, std::size_t drafted,
                                                  std::span<const reprise::NodeIndex> parents) {
    if (!run(batch, drafted, parents)) return failure();
    if (!fetch(host_picks_.get(), picks_.get(), (drafted + 1) * sizeof(std::int32_t))) return failure();
    return reprise::TokenSpan(host_picks_.get(), drafted + 1);
  }
  /// V13. The result is valid until the next pass.
  reprise::Result<reprise::Accepted> verify_and_walk(reprise::TokenSpan batch, std::size_t drafted,
                                                     std::span<const reprise::NodeIndex> parents) {
    if (!run(batch, drafted, parents)) return failure();
    for (std::size_t row = 0; row < drafted; ++row) {
      host_tree_.get()[row] = batch[batch.size() - drafted + row];
      host_tree_.get()[drafted + row] = parents[row];
    }
    if (cudaMemcpyAsync(tree_.get(), host_tree_.get(), 2 * drafted * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                        stream_) != cudaSuccess)
      return failure();
    walk_draft<<<1, 1, 0, stream_>>>(tree_.get(), static_cast<std::int32_t>(drafted),
                                     static_cast<std::int32_t>(batch.size() - drafted - 1), picks_.get(), steps_.get());
    if (cudaGetLastError() != cudaSuccess) return failure();
    if (!fetch(host_steps_.get(), steps_.get(), (drafted + 2) * sizeof(Step))) return failure();
    rows_.clear();
    tokens_.clear();
    for (std::int32_t step = 1; step <= host_steps_.get()[0].row; ++step) {
      rows_.push_back(static_cast<std::size_t>(host_steps_.get()[step].row));
      tokens_.push_back(host_steps_.get()[step].token);
    }
    return reprise::Accepted{rows_, tokens_};
  }
  void commit(std::size_t keep) {
    kept_.resize(keep);
    for (std::size_t row = 0; row < keep; ++row) kept_[row] = row;
    model_.keep(kept_);
  }
  void commit_rows(std::span<const std::size_t> rows) { model_.keep(rows); }

 private:
  template <class T>
  using Device = std::unique_ptr<T, FreeDevice>;
  template <class T>
  using Pinned = std::unique_ptr<T, FreePinned>;

  CudaVerifier(Model model, std::size_t most_drafted, cudaStream_t stream)
      : model_(std::move(model)), most_drafted_(most_drafted), stream_(stream) {}

  template <class T>
  static bool on_device(Device<T>& memory, std::size_t bytes) {
    void* made = nullptr;
    if (cudaMalloc(&made, bytes) != cudaSuccess) return false;
    memory.reset(static_cast<T*>(made));
    return true;
  }
  template <class T>
  static bool pinned(Pinned<T>& memory, std::size_t bytes) {
    void* made = nullptr;
    if (cudaMallocHost(&made, bytes) != cudaSuccess) return false;
    memory.reset(static_cast<T*>(made));
    return true;
  }
  static reprise::Error failure() {
    return {reprise::ErrorCode::verifier_failed,
            "the pass failed on the GPU: see cudaGetLastError(), and whether the draft is longer than most_drafted"};
  }
  /// Computes the logits and the picks on the stream.
  bool run(reprise::TokenSpan batch, std::size_t drafted, std::span<const reprise::NodeIndex> parents) {
    if (drafted > most_drafted_) return false;
    const float* logits = model_.logits(batch, drafted, parents, stream_);
    if (logits == nullptr) return false;
    pick_rows<<<static_cast<unsigned>(drafted + 1), threads, 0, stream_>>>(logits, model_.vocabulary(), picks_.get());
    return cudaGetLastError() == cudaSuccess;
  }
  bool fetch(void* to, const void* from, std::size_t bytes) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_) == cudaSuccess &&
           cudaStreamSynchronize(stream_) == cudaSuccess;
  }

  Model model_;
  std::size_t most_drafted_;
  cudaStream_t stream_;
  Device<std::int32_t> tree_, picks_;
  Device<Step> steps_;
  Pinned<std::int32_t> host_tree_, host_picks_;
  Pinned<Step> host_steps_;
  std::vector<reprise::NodeIndex> chain_;
  std::vector<std::size_t> rows_, kept_;
  std::vector<reprise::Token> tokens_;
};

}  // namespace cuda_example
