// SPDX-License-Identifier: Apache-2.0
#include "replay/spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace reprise::replay::spec_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts(const std::string& spec) {
  std::vector<std::string> all;
  for (const Spec& one : parse_spec(spec)) all.push_back(one.text());
  return all;
}

std::string refused(const std::string& spec) {
  return testing::refusal([&] { return parse_spec(spec); });
}

TEST(Spec, ReadsNameAndSettings) {
  const Spec spec = parse_spec("vllm:min=2,max=5").front();
  EXPECT_EQ(spec.name, "vllm");
  ASSERT_EQ(spec.settings.size(), 2U);
  EXPECT_EQ(spec.settings[1].first, "max");
  EXPECT_EQ(spec.settings[1].second, "5");
  EXPECT_THAT(texts("ds4"), ElementsAre("ds4"));
  EXPECT_THAT(texts("vllm:min=2,max=5"), ElementsAre("vllm:min=2,max=5"));
}

TEST(Spec, MakesOneRunOfEachValueOfARange) {
  EXPECT_THAT(texts("pld:k=0..2"), ElementsAre("pld:k=0", "pld:k=1", "pld:k=2"));
  EXPECT_THAT(texts("pld:k=5..5"), ElementsAre("pld:k=5"));
  EXPECT_THAT(texts("ds4:eos=-1..1"), ElementsAre("ds4:eos=-1", "ds4:eos=0", "ds4:eos=1"));
  EXPECT_THAT(texts("x:a=1..2,b=c,d=3..4"),
              ElementsAre("x:a=1,b=c,d=3", "x:a=1,b=c,d=4", "x:a=2,b=c,d=3", "x:a=2,b=c,d=4"));
}

TEST(Spec, RefusesWhatTheGrammarDoesNotAllow) {
  for (const char* spec : {"", ":k=1", "pld:", "pld:k", "pld:k=", "pld:=1", "pld:k=1,", "pld:,k=1", "pld:k=1,,n=2"})
    EXPECT_THAT(refused(spec), HasSubstr("name[:key=value,...]")) << spec;
  EXPECT_THAT(refused("pld:k=1,k=2"), HasSubstr("the key k is given twice"));
}

TEST(Spec, RefusesBrokenRanges) {
  for (const char* spec : {"pld:k=..", "pld:k=1..", "pld:k=..2", "pld:k=1..x", "pld:k=1...3", "pld:k=1..2..3",
                           "pld:k=1.5..2", "pld:k=1..99999999999999999999"})
    EXPECT_THAT(refused(spec), HasSubstr("a range is two whole numbers")) << spec;
  EXPECT_THAT(refused("pld:k=3..1"), HasSubstr("runs backwards"));
  EXPECT_THAT(refused("pld:k=1..100000000"), HasSubstr("more than 1000 runs"));
  EXPECT_THAT(refused("pld:k=-9223372036854775808..9223372036854775807"), HasSubstr("more than 1000 runs"));
  EXPECT_THAT(refused("x:a=1..100,b=1..100"), HasSubstr("more than 1000 runs"));
}

}  // namespace
}  // namespace reprise::replay::spec_test
