// SPDX-License-Identifier: Apache-2.0
// Compares the walk on the GPU with the library's walk over random trees. Exit status: 0 all are equal, 1 not all are,
// 77 there is no GPU.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda_verifier.cuh"
#include "random_walk.hpp"

namespace self_test {

constexpr std::size_t most_drafted = 64;
constexpr std::int32_t vocabulary = 1000;

/// A "model" whose logits the test sets.
class TableModel {
 public:
  std::vector<float> table;

  [[nodiscard]] std::int32_t vocabulary() const { return self_test::vocabulary; }
  [[nodiscard]] reprise::Capabilities capabilities() const {
    reprise::Capabilities can;
    can.max_leaves = most_drafted;
    return can;
  }
  const float* logits(reprise::TokenSpan, std::size_t, std::span<const reprise::NodeIndex>, cudaStream_t stream) {
    void* made = nullptr;
    if (!memory_ && cudaMalloc(&made, (most_drafted + 1) * self_test::vocabulary * sizeof(float)) != cudaSuccess)
      return nullptr;
    if (!memory_) memory_.reset(static_cast<float*>(made));
    const auto copied =
        cudaMemcpyAsync(memory_.get(), table.data(), table.size() * sizeof(float), cudaMemcpyHostToDevice, stream);
    return copied == cudaSuccess ? memory_.get() : nullptr;
  }
  void keep(std::span<const std::size_t>) {}

 private:
  std::unique_ptr<float, cuda_example::FreeDevice> memory_;
};
using Verifier = cuda_example::CudaVerifier<TableModel>;
static_assert(reprise::TreeVerifier<Verifier> && reprise::SelfWalkingVerifier<Verifier>);

/// Returns logits whose argmax is the pick of each row. Later tokens tie with some picks, and some scores are NaN.
std::vector<float> logits_of(const cuda_example::RandomWalk& made, reprise::testing::Random& random) {
  std::vector<float> table;
  for (const reprise::Token pick : made.picks)
    for (std::int32_t token = 0; token < vocabulary; ++token) {
      const bool tie = token == pick || (token > pick && random.chance(1));
      const float other = random.chance(5) ? std::numeric_limits<float>::quiet_NaN() : -1.0F;
      table.push_back(tie ? 2.0F : other);
    }
  return table;
}

bool same(const reprise::Accepted& walked, const std::vector<cuda_example::Step>& expected) {
  if (walked.rows.size() != expected.size()) return false;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (static_cast<std::int32_t>(walked.rows[i]) != expected[i].row || walked.tokens[i] != expected[i].token)
      return false;
  return true;
}

}  // namespace self_test

int main() {
  using namespace self_test;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no GPU: compiled only");
    return 77;
  }
  auto verifier = Verifier::make(TableModel(), most_drafted, nullptr);
  if (!verifier) return std::fprintf(stderr, "%s\n", verifier.error().message.data()), 1;
  reprise::testing::Random random(3);
  constexpr int cases = 3000;
  for (int i = 0; i < cases; ++i) {
    const cuda_example::RandomWalk made = cuda_example::random_walk(random, most_drafted);
    verifier->model().table = logits_of(made, random);
    const auto walked = verifier->verify_and_walk(made.batch, made.drafted, made.parents);
    if (!walked) return std::fprintf(stderr, "case %d: %s\n", i, walked.error().message.data()), 1;
    if (!same(*walked, cuda_example::library_walk(made)))
      return std::fprintf(stderr, "case %d: the GPU walked another path than the library\n", i), 1;
  }
  std::printf("%d random trees: the GPU walks like the library\n", cases);
}
