// SPDX-License-Identifier: Apache-2.0
#include "reprise/stats/report_words.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace reprise::report_words_test {
namespace {

// Programs read these words, so renaming an enumerator must not change them.
TEST(ReportWords, StayAsTheyAreWhereEnumeratorsHaveOtherNames) {
  EXPECT_EQ(report_word(Cut::throttled), "gated");
  EXPECT_EQ(report_word(Cut::out_of_memory), "memory");
  EXPECT_EQ(report_word(Cut::strategy_threw), "failed");
  EXPECT_EQ(report_word(DraftSource::history), "memory");
  EXPECT_EQ(report_word(DraftSource::predicted_output), "reference");
  EXPECT_EQ(report_word(DraftSource::jump_forward), "forced");
}
TEST(ReportWords, AreOneForEachEnumerator) {
  std::set<std::string_view> cuts;
  for (std::size_t i = 0; i < cut_count; ++i) cuts.insert(report_word(static_cast<Cut>(i)));
  EXPECT_EQ(cuts.size(), cut_count);
  std::set<std::string_view> sources;
  for (std::size_t i = 0; i < draft_source_count; ++i) sources.insert(report_word(static_cast<DraftSource>(i)));
  EXPECT_EQ(sources.size(), draft_source_count);
}

}  // namespace
}  // namespace reprise::report_words_test
