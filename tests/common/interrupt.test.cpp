// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "common/terminal.hpp"

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

TEST(EndLineAtInterrupt, WritesANewLineBeforeTheProgramEnds) {
  EXPECT_EXIT(
      {
        end_line_at_interrupt();
        std::fputs("session 5 of 9", stderr);
        std::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "session 5 of 9\n");
}

}  // namespace
}  // namespace reprise::tools::interrupt_test
