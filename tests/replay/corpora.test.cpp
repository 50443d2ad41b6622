// SPDX-License-Identifier: Apache-2.0
#include "replay/corpora.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/input_error.hpp"
#include "replay/replay_tool.hpp"
#include "replay/run.hpp"
#include "replay/strategies.hpp"
#include "replay/trace.hpp"
#include "support/corpora.hpp"
#include "support/refusal.hpp"

namespace reprise::replay::corpora_test {
namespace {

using ::testing::AllOf;
using testing::corpus_of;
using ::testing::HasSubstr;

class CorporaTest : public ReplayToolTest {
 protected:
  using FolderTest::write;
  [[nodiscard]] std::string write(const std::string& name, const testing::CorpusBytes& bytes) const {
    return write(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  static std::string refused(const std::vector<std::string>& paths, std::optional<std::uint64_t> fingerprint = {}) {
    return testing::refusal([&] { return Corpora(paths, fingerprint); });
  }
};

TEST_F(CorporaTest, RefusesFilesThatCannotBeUsed) {
  const std::string good = write("a.corpus", corpus_of({{1, 2, 3}}, 100, 7));
  EXPECT_EQ(refused({good}), "accepted");
  EXPECT_EQ(refused({good}, 7), "accepted");
  EXPECT_THAT(refused({good}, 8), HasSubstr("its fingerprint is 7, --fingerprint 8"));
  EXPECT_THAT(refused({good}, 8), HasSubstr("; build it with this tokenizer"));
  EXPECT_THAT(refused({good, write("empty.corpus", corpus_of({}, 100, 7))}),
              HasSubstr("empty.corpus: the corpus has no tokens; leave it out"));
  EXPECT_THAT(refused({write("nothing", "")}), HasSubstr("is missing: take another copy of the file (0 bytes"));
  EXPECT_THAT(refused({good, good, good, good}), HasSubstr("at most 3 corpora"));
  EXPECT_THAT(refused({folder_.generic_string() + "/none"}), HasSubstr("there is no file of this name"));
  EXPECT_THAT(refused({write("text", testing::CorpusBytes(300, std::byte{65}))}), HasSubstr("does not begin like"));
  testing::CorpusBytes cut = corpus_of({{1, 2, 3}}, 100, 7);
  cut.pop_back();
  EXPECT_THAT(refused({write("cut.corpus", cut)}), HasSubstr("the end of the corpus is missing"));
  EXPECT_THAT(refused({good, write("b.corpus", corpus_of({{1}}, 101, 7))}),
              HasSubstr("the vocabulary has 101 tokens, but that of"));
  EXPECT_THAT(refused({good, write("c.corpus", corpus_of({{1}}, 100, 8))}), HasSubstr("the fingerprint is 8, but"));
}

TEST_F(CorporaTest, RefusesTracesOfAnotherVocabulary) {
  const Corpora corpora({write("a.corpus", corpus_of({{1, 2, 3}}, 100))}, {});
  Trace trace;
  trace.path = "t.jsonl";
  trace.sessions.push_back({"s", "c", {{{1, 2}, {99}}}});
  EXPECT_NO_THROW(corpora.check(std::vector{trace}));
  for (const Token token : {100, -1}) {
    trace.sessions[0].turns[0].output[0] = token;
    EXPECT_THAT(testing::refusal([&] { corpora.check(std::vector{trace}); }),
                AllOf(HasSubstr("t.jsonl: session s: the token " + std::to_string(token)),
                      HasSubstr("; give a corpus that was built with the tokenizer of the trace")));
  }
}

TEST_F(CorporaTest, StrategiesDraftFromThem) {
  std::vector<Token> output;
  for (Token token = 0; token < 60; ++token) output.push_back(token * 7 % 60);
  const Corpora corpora({write("a.corpus", corpus_of({output}, 100))}, {});
  Trace trace;
  trace.sessions.push_back({"s", "c", {{{90, 91, 0}, std::vector<Token>(output.begin() + 1, output.end())}}});
  const auto passes = [&](std::string_view spec, const std::vector<DatastoreRef>& stores) {
    const std::vector<StrategyRun> runs = make_runs(spec, stores);
    const std::vector<ControlSpec> controls = {{ControlKind::all, 0}};
    const std::vector<CostCurve> curves = {CostCurve::parse("linear:0")};
    tools::Progress progress(nullptr, 80);
    const std::vector<Row> rows = replay_all({{&trace, 1}, runs, controls, curves, {}}, progress);
    EXPECT_TRUE(rows.front().counts.lossless());
    EXPECT_EQ(rows.front().reads_corpora, spec != "pld");
    return rows.front().counts.passes;
  };
  EXPECT_EQ(passes("ngram", {}), output.size() - 2);
  EXPECT_LT(passes("ngram", corpora.stores()), output.size() / 2);
  EXPECT_EQ(passes("rest", {}), output.size() - 2) << "it has no datastore";
  EXPECT_LT(passes("rest", corpora.stores()), output.size() / 2);
  EXPECT_EQ(passes("pld", corpora.stores()), passes("pld", {}));
}

TEST_F(CorporaTest, AreAnOptionOfTheTool) {
  const std::string corpus = write("a.corpus", corpus_of({{1, 2, 3, 4, 5, 6, 7, 8}}, 100, 7));
  const std::string trace =
      write("t.jsonl", R"({"id":"a","category":"x","turns":[{"prompt":[9,1],"output":[2,3,4,5,6,7]}]})");
  const auto with = [&](const Arguments& more) {
    return joined({"--cost", "linear:0", "--control", "all", trace, "--corpus", corpus}, more);
  };
  EXPECT_EQ(word(result(with({})), "corpora"), corpus);
  EXPECT_EQ(word(result(with({"--fingerprint", "7", "--memory", "past"})), "corpora"), corpus);
  EXPECT_EQ(word(results(with({"--strategy", "ngram", "--strategy", "pld"})).back(), "corpora"), "unused");
  EXPECT_EQ(result({"--cost", "linear:0", trace}).find("corpora"), nullptr);
  refuses(with({"--strategy", "pld"}), "none of the strategies given reads a corpus");
  refuses(with({"--fingerprint", "6"}), "its fingerprint is 7, --fingerprint 6");
  refuses(with({"--output", corpus}), "the corpus");
}

}  // namespace
}  // namespace reprise::replay::corpora_test
