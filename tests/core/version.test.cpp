// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/token.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reprise::version_test {
namespace {

TEST(Version, TextAndNumbersSayTheSame) {
  EXPECT_EQ(version_string,
            std::to_string(version_major) + "." + std::to_string(version_minor) + "." + std::to_string(version_patch));
}

}  // namespace
}  // namespace reprise::version_test
