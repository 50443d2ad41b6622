// SPDX-License-Identifier: Apache-2.0
// The drafts and lessons of the default drafter in fixed random worlds, as one number for each round. They must be the
// same on every machine, because engines that decode one sequence on several devices would hang otherwise. The file
// ngram_digests.txt has a line for each world: the seed, and the numbers of its rounds. After an intended change of the
// policy, REPRISE_WRITE_DIGESTS=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/choices.hpp"
#include "support/ngram_world.hpp"

namespace reprise::testing::ngram_digests_test {
namespace {

constexpr std::uint64_t worlds = 80;
const std::string path = std::string(REPRISE_SOURCE_DIR) + "/tests/draft/ngram_digests.txt";

std::string line_of(std::uint64_t seed) {
  Choices choices(seed);
  std::ostringstream line;
  line << seed << std::hex << std::setfill('0');
  for (const std::uint16_t digest : run_ngram_world(choices).digests) line << ' ' << std::setw(4) << digest;
  return line.str();
}

TEST(NgramDigests, OfEveryRoundAreThoseOfTheFile) {
  if (std::getenv("REPRISE_WRITE_DIGESTS") != nullptr) {
    std::ofstream file(path);
    for (std::uint64_t seed = 0; seed < worlds; ++seed) file << line_of(seed) << '\n';
  }
  std::ifstream file(path);
  for (std::uint64_t seed = 0; seed < worlds; ++seed) {
    std::string expected;
    ASSERT_TRUE(std::getline(file, expected)) << path << " ends before world " << seed;
    std::istringstream wanted(expected);
    std::istringstream found(line_of(seed));
    std::string left;
    std::string right;
    for (int round = -1; wanted >> left; ++round) {
      ASSERT_TRUE(found >> right) << "world " << seed << " ends before round " << round;
      ASSERT_EQ(left, right) << "world " << seed << " differs first in round " << round;
    }
    ASSERT_FALSE(found >> right) << "world " << seed << " has more rounds";
  }
}

}  // namespace
}  // namespace reprise::testing::ngram_digests_test
