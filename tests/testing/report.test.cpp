// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::testing::report_test {
namespace {

TEST(Report, GivesTheWorstVerdictAndDoesNotCountWhatWasSkipped) {
  Report report;
  EXPECT_EQ(report.verdict(), Verdict::skipped);
  EXPECT_FALSE(report.passed());
  report.findings.push_back({"V1", "one", Verdict::skipped, 0, 0, "why"});
  EXPECT_FALSE(report.passed());
  report.findings.push_back({"V2", "two", Verdict::exact, 5, 0, ""});
  EXPECT_EQ(report.verdict(), Verdict::exact);
  report.findings.push_back({"V3", "three", Verdict::near_tie, 5, 2, "close"});
  EXPECT_EQ(report.verdict(), Verdict::near_tie);
  EXPECT_TRUE(report.passed());
  report.findings.push_back({"V4", "four", Verdict::wrong, 5, 0, "bad"});
  EXPECT_EQ(report.verdict(), Verdict::wrong);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.find("five"), nullptr);
}
TEST(Report, PrintsALineForEachFinding) {
  Report report;
  report.findings.push_back({"V3", "three", Verdict::near_tie, 5, 2, "close"});
  EXPECT_EQ(report.to_string(), "verdict: near tie\n  V3  three: near tie (5 checks, 2 near ties)\n      close\n");
}

}  // namespace
}  // namespace reprise::testing::report_test
