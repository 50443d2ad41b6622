// SPDX-License-Identifier: Apache-2.0
#include "replay/control_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace reprise::replay::control_spec_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> read(const std::string& text) {
  std::vector<std::string> texts;
  for (const ControlSpec& spec : parse_control(text)) texts.push_back(spec.text());
  return texts;
}
std::string refused(const std::string& text) {
  return testing::refusal([&] { return parse_control(text); });
}

TEST(ControlSpec, IsSpeltAsItIsRead) {
  for (const char* text : {"auto", "cost", "all", "hindsight", "best:0", "best:64"})
    EXPECT_THAT(read(text), ElementsAre(text));
  EXPECT_THAT(read("best:2..4"), ElementsAre("best:2", "best:3", "best:4"));
}

TEST(ControlSpec, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "none", "costs", "best", "Best:3", "all:3"})
    EXPECT_EQ(refused(text),
              "--control " + std::string(text) + ": the choices are auto, cost, all, hindsight and best:K");
  for (const char* text : {"best:", "best:x", "best:65", "best:-1", "best:1..", "best:..3", "best:1..65", "best:1...3"})
    EXPECT_THAT(refused(text), HasSubstr("from 0 to 64")) << text;
  EXPECT_THAT(refused("best:4..2"), HasSubstr("runs backwards"));
}

TEST(ControlSpec, WeighsCostsByItselfWhereProbabilitiesAreLearned) {
  EXPECT_EQ(resolve({}, true), (ControlSpec{ControlKind::cost, 0}));
  EXPECT_EQ(resolve({}, false), (ControlSpec{ControlKind::all, 0}));
  for (const ControlSpec spec : {ControlSpec{ControlKind::cost, 0}, {ControlKind::all, 0}, {ControlKind::best, 3}}) {
    EXPECT_EQ(resolve(spec, true), spec);
    EXPECT_EQ(resolve(spec, false), spec);
  }
}

}  // namespace
}  // namespace reprise::replay::control_spec_test
