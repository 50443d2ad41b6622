// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace reprise::tools::interrupt_test {
namespace {

TEST(InterruptFlag, CatchesOneInterruptOrTermination) {
  for (const int signal : {SIGINT, SIGTERM}) {
    {
      const InterruptFlag flag;
      EXPECT_FALSE(InterruptFlag::raised());
      std::raise(signal);
      EXPECT_TRUE(InterruptFlag::raised());
    }
    const InterruptFlag again;
    EXPECT_FALSE(InterruptFlag::raised());
  }
}

}  // namespace
}  // namespace reprise::tools::interrupt_test
