// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "common/bundled_files.hpp"
#include "common/input_error.hpp"
#include "common/progress.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "replay/options.hpp"
#include "replay/replay_tool.hpp"
#include "replay/report.hpp"
#include "replay/report_json.hpp"

namespace reprise::replay::replay_tool_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Tool : public ReplayToolTest {
 protected:
  static constexpr const char* two_sessions =
      R"({"id":"a","category":"x","turns":[{"prompt":[1,2,3,4,5],"output":[1,2,3,4,5,1,2,3,4,5]}]})"
      "\n"
      R"({"id":"b","category":"y","turns":[{"prompt":[1,2,3],"output":[4,5,6]}]})"
      "\n";
};

TEST_F(Tool, DraftsNothingAfterATokenThatEndsAGeneration) {
  std::string line = R"({"id":"a","category":"x","turns":[)";
  for (int turn = 0; turn < 30; ++turn) line += R"({"prompt":[5,6,7],"output":[8,9,10,11,2]},)";
  line.back() = ']';
  const std::string trace = write("t.jsonl", line + "}\n");
  const auto count = [&](std::vector<std::string> more, const char* name) {
    more.insert(more.end(), {"--format", "json", "--cost", "linear:0", trace});
    return static_cast<std::int64_t>(*results_in(run(more).out).at(0).find(name)->number()->integer);
  };
  EXPECT_GT(count({}, "drafted"), 200);
  EXPECT_LT(count({"--eos", "99", "--eos", "2"}, "drafted"), 130) << "30 turns of 4 tokens";
  EXPECT_EQ(count({"--eos", "2"}, "passes"), count({}, "passes"));
  EXPECT_EQ(results_in(run({"--format", "json", "--eos", "2", trace}).out).at(0).find("eos")->array()->size(), 1U);
  refuses({"--eos", "-1", trace}, "--eos -1: expected a token id");
}

TEST_F(Tool, WritesOneResultForEachTraceCategoryStrategyAndCost) {
  const std::string trace = write("t.jsonl", two_sessions);
  const Ran ran = run({"--format", "json", "--by-category", "--strategy", "hf:k=1..2", "--strategy", "none", "--cost",
                       "linear:0", "--cost", "linear:0.1", trace, trace});
  EXPECT_EQ(ran.status, 0) << ran.error;
  tools::Json json;
  ASSERT_FALSE(tools::parse_json(ran.out, json));
  EXPECT_NE(json.find("version")->string(), nullptr);
  const tools::Json::Array results = results_in(ran.out);
  ASSERT_EQ(results.size(), 2U * 3 * 3 * 2);
  std::vector<std::string> first;
  for (std::size_t i = 0; i < 8; ++i)
    first.push_back(*results[i].find("category")->string() + " " + *results[i].find("strategy")->string() + " " +
                    *results[i].find("cost")->string());
  EXPECT_THAT(first,
              ElementsAre("all hf:k=1 linear:0", "all hf:k=1 linear:0.1", "x hf:k=1 linear:0", "x hf:k=1 linear:0.1",
                          "y hf:k=1 linear:0", "y hf:k=1 linear:0.1", "all hf:k=2 linear:0", "all hf:k=2 linear:0.1"));
  for (const tools::Json& result : results) {
    for (const char* name : {"trace", "category", "strategy", "cost", "memory"})
      ASSERT_NE(result.find(name)->string(), nullptr) << name;
    for (const char* name : {"sessions", "turns", "tokens", "passes", "drafted", "accepted", "max_propose_ns",
                             "peak_bytes", "memory_bytes"})
      ASSERT_TRUE(result.find(name)->number()->integer) << name;
    for (const char* name : {"mat", "acceptance_rate", "drafted_per_pass", "ns_per_token", "ns_per_propose", "speedup"})
      ASSERT_NE(result.find(name)->number(), nullptr) << name;
    for (const char* name : {"control", "cost_known", "shape", "part"})
      ASSERT_NE(result.find(name)->string(), nullptr) << name;
    for (const char* name : {"noise", "seed", "max_nodes", "control_ns_per_token", "worst_loss", "calibration_error"})
      ASSERT_NE(result.find(name)->number(), nullptr) << name;
    EXPECT_EQ(result.find("cuts")->object()->keys.size(), cut_count);
    EXPECT_EQ(result.find("reliability")->array()->size(), Reliability::bin_count);
    EXPECT_EQ(result.object()->keys.size(), 33U);
    EXPECT_EQ(*result.find("control")->string(), "all");
    EXPECT_EQ(*result.find("cost_known")->string(), "unused");
    EXPECT_TRUE(*result.find("lossless")->boolean());
    EXPECT_EQ(*result.find("trace")->string(), trace);
    EXPECT_EQ(*result.find("memory")->string(), "session");
  }
  EXPECT_EQ(results[0].find("sessions")->number()->integer, 2);
  EXPECT_EQ(results[0].find("tokens")->number()->integer, 9 + 2);
  EXPECT_EQ(results[2].find("tokens")->number()->integer, 9);
}

TEST_F(Tool, SaysWhetherTopKRowsWereShown) {
  const std::string line = R"({"id":"a","category":"x","turns":[{"prompt":[1],"output":[2,3],"top_k":[[2],[3,4]]}]})";
  const std::string trace = write("t.jsonl", line);
  const auto value = [](const Ran& ran) {
    tools::Json json;
    EXPECT_FALSE(tools::parse_json(ran.out, json)) << ran.out << ran.error;
    const tools::Json* found = json.find("results")->array()->front().find("top_k");
    return found == nullptr ? "missing" : *found->string();
  };
  const std::vector<std::string> base = {"--strategy", "hf", "--cost", "linear:0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return run(more);
  };
  EXPECT_EQ(value(with({"--format=json", "--top-k=on", trace})), "unused") << "this strategy wants no rows";
  EXPECT_EQ(value(with({"--format=json", trace})), "off") << "the default";
  EXPECT_EQ(value(with({"--format=json", "--top-k=off", trace})), "off");
  EXPECT_EQ(value(with({"--format=json", "--top-k=on", "--stream", trace, write("u.jsonl", two_sessions)})), "unused");
  EXPECT_EQ(value(with({"--format=json", write("u.jsonl", two_sessions)})), "missing");
  EXPECT_THAT(with({"--top-k=on", trace}).out,
              AllOf(HasSubstr("\n  drafts: chains, rankings of accepted tokens (--top-k on)\n"),
                    EndsWith("Rows of rejected\ntokens are not in a trace: a lower bound.\n")));
  EXPECT_THAT(with({trace}).out, AllOf(HasSubstr("\n  drafts: chains, no rankings (--top-k off)\n"),
                                       EndsWith("were not shown (--top-k off).\n")));
  EXPECT_THAT(with({"--top-k=off", trace}).out, EndsWith("were not shown (--top-k off).\n"));
  EXPECT_THAT(with({write("u.jsonl", two_sessions)}).out, Not(HasSubstr("op-k")));
  const Ran refused = with({"--top-k=on", write("u.jsonl", two_sessions)});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.error, HasSubstr("--top-k on: no turn of the traces has top_k"));
  const Ran broken =
      run({write("v.jsonl", std::string(two_sessions) +
                                R"({"id":"c","category":"x","turns":[{"prompt":[1],"output":[2,3],"top_k":[[2]]}]})")});
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.error, HasSubstr("v.jsonl:3: turns[0].top_k: has the length 1, but output has the length 2"));

  const Arguments learned = {"--strategy=ngram", "--cost=linear:0.1", "--cost-known=learned", "--seeds=1"};
  EXPECT_THAT(run(joined(learned, {"--top-k=on", trace})).out,
              AllOf(HasSubstr("\n  drafts: chains, rankings of accepted tokens"), EndsWith("a lower bound.\n")));
  for (const auto& [strategy, shown] : {std::pair("ngram", "accepted rows"), std::pair("ngram:rows=no", "unused")})
    EXPECT_EQ(value(run({"--strategy", strategy, "--top-k=on", "--cost=linear:0.1", "--cost-known=learned", "--seeds=1",
                         "--format=json", trace})),
              shown);
}

TEST_F(Tool, CountsTheTopKRowsThatWereShown) {
  Row row;
  row.trace = "t";
  row.category = all_categories;
  row.strategy = "ranked";
  row.counts.charges = {Charge()};
  row.counts.top_k_rows = 1234;
  const std::vector<CostCurve> curves = {CostCurve::parse("linear:0")};
  const std::vector<Row> rows = {row};
  Report report{rows, curves};
  report.top_k = true;
  std::ostringstream table;
  write_table(table, report, {120, false});
  EXPECT_THAT(table.str(), HasSubstr("  top-k rows of accepted tokens are shown: ranked (1,234)\n"));
  std::ostringstream json;
  write_json(json, report);
  EXPECT_THAT(json.str(), HasSubstr(R"("top_k": "accepted rows", "top_k_rows": 1234)"));
}

TEST_F(Tool, StatesTheShapeOfTheDrafts) {
  const std::string trace = write("t.jsonl", two_sessions);
  const Arguments learned = {"--cost=linear:0.1", "--cost-known=learned", "--seeds=1"};
  for (const Arguments& more : {Arguments(), learned}) {
    EXPECT_THAT(output(joined(more, {trace})),
                AllOf(HasSubstr("\n  drafts: chains, no rankings (the traces have none)\n"), Not(HasSubstr("Trees"))));
    EXPECT_THAT(output(joined(more, {"--shape=tree", trace})),
                AllOf(HasSubstr("\n  drafts: trees, no rankings (the traces have none)\n"),
                      HasSubstr("\nTrees (--shape tree): for engines that verify trees"),
                      EndsWith("gets chains, which are the default.\n")));
  }
  EXPECT_EQ(word(result({"--cost=linear:0", trace}), "shape"), "chain");
  EXPECT_EQ(word(result({"--cost=linear:0", "--shape=tree", trace}), "shape"), "tree");
}

TEST_F(Tool, DrawsATable) {
  const std::string trace = write("t.jsonl", two_sessions);
  const Ran ran = run({"--strategy", "none", "--strategy", "hf", "--by-category", trace});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr(trace + "\n  2 sessions, 2 turns, 11 tokens"), HasSubstr(", category x\n"),
                             HasSubstr("s=0.05"), HasSubstr("speedup, s=0.02"), HasSubstr("hf "), HasSubstr(" ####")));
  std::istringstream lines(ran.out);
  lines.ignore(10'000, '\n');  // the path may be long
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 120 || line.find(trace) != std::string::npos) << line;
}

TEST_F(Tool, FitsATerminalOf80Columns) {
  const std::string trace = write("t.jsonl", two_sessions);
  const Ran ran = run({"--strategy", "ngram-simple:n=3,m=10", "--strategy",
                       "copy:index=rolling_hash,min_ngram=1,max_ngram=16,k=10,prefer=recent", trace},
                      {80, false});
  EXPECT_THAT(ran.out, HasSubstr("\nspeedup under "));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 100 || line.find(trace) != std::string::npos) << line;
}

TEST_F(Tool, ReplaysOnceForEachCurveWhereControlWeighsCosts) {
  const std::string trace = write("t.jsonl", two_sessions);
  const auto lines = [&](const Arguments& more) {
    std::vector<std::string> found;
    for (const tools::Json& one :
         results(joined({"--by-category", "--cost", "linear:0", "--cost", "linear:5", trace}, more)))
      found.push_back(word(one, "strategy") + " " + word(one, "control") + " " + word(one, "category") + " " +
                      word(one, "cost") + " " + word(one, "cost_known") + " " +
                      std::to_string(static_cast<int>(number(one, "seed"))));
    return found;
  };
  EXPECT_THAT(
      lines({"--strategy", "ngram"}),
      ElementsAre("ngram cost all linear:0 told 0", "ngram cost all linear:5 told 0", "ngram cost x linear:0 told 0",
                  "ngram cost x linear:5 told 0", "ngram cost y linear:0 told 0", "ngram cost y linear:5 told 0"));
  const auto learned = lines({"--strategy", "ngram", "--strategy", "hf", "--control", "cost", "--control", "auto",
                              "--control", "best:1", "--cost-known", "learned", "--seed", "3"});
  ASSERT_EQ(learned.size(), 2U * 6 + 3 * 6) << "auto is cost for one and all for the other";
  EXPECT_EQ(learned[0], "ngram cost all linear:0 learned 3");
  EXPECT_EQ(learned[6], "ngram best:1 all linear:0 unused 0");
  EXPECT_EQ(learned[12], "hf cost all linear:0 learned 3");
  EXPECT_EQ(learned[18], "hf all all linear:0 unused 0");
}

TEST_F(Tool, CarriesWhatControlHasLearnedFromSessionToSessionWhenAskedTo) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(two_sessions);
  const std::string trace = write("t.jsonl", text);
  const auto replay = [&](const std::string& known, const std::string& threads) {
    const tools::Json one = result({"--strategy", "hf", "--control", "cost", "--cost", "linear:3", "--cost-known",
                                    known, "--threads", threads, trace});
    EXPECT_EQ(word(one, "cost_known"), known);
    return number(one, "drafted");
  };
  EXPECT_EQ(replay("carried", "1"), replay("carried", "4"));
  EXPECT_LT(replay("carried", "1"), replay("learned", "1")) << "known to be dear after the first few";
}

TEST_F(Tool, DraftsByAssumedCostsWithoutTimes) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(two_sessions);
  const std::string trace = write("t.jsonl", text);
  const auto replay = [&](const std::string& known, const std::string& prior) {
    const Arguments one = {"--strategy",  "hf",  "--control",    "cost", "--cost",
                           "linear:0.02", trace, "--cost-known", known};
    return result(prior.empty() ? one : joined(one, {"--cost-prior", prior}));
  };
  const auto drafted = [](const tools::Json& one) { return number(one, "drafted"); };
  const tools::Json cheap = replay("assumed", "gpu-batch-1");
  EXPECT_EQ(word(cheap, "cost_known"), "assumed");
  EXPECT_EQ(word(cheap, "cost_prior"), "gpu-batch-1");
  EXPECT_EQ(number(cheap, "seed"), 0) << "no times";
  EXPECT_GT(drafted(cheap), drafted(replay("assumed", "linear:5")));
  EXPECT_EQ(replay("assumed", "").find("cost_prior"), nullptr);
  EXPECT_GT(drafted(replay("learned", "gpu-batch-1")), drafted(replay("learned", "linear:5")));
  refuses({"--cost-known", "learned", "--cost-prior", "gpu", trace}, "--cost-prior gpu");
}

TEST_F(Tool, CountsWhyDraftsWereCutAndHowTrueTheirClaimsWere) {
  const tools::Json one =
      result({"--strategy", "hf", "--control", "best:1", "--cost", "linear:2", write("t.jsonl", two_sessions)});
  double passes = 0;
  for (const tools::Json& count : one.find("cuts")->object()->values) passes += count.number()->value;
  EXPECT_EQ(passes, number(one, "passes"));
  EXPECT_GT(number(*one.find("cuts"), "budget"), 0);
  const tools::Json& certain = one.find("reliability")->array()->back();
  EXPECT_GT(number(certain, "tests"), 0);
  EXPECT_EQ(number(certain, "claimed"), 1);
  EXPECT_NEAR(1 - number(certain, "observed"), number(one, "calibration_error"), 1e-12);
  EXPECT_GE(number(one, "worst_loss"), 0);
}

TEST_F(Tool, ReplaysThePartThatIsAskedFor) {
  const std::string trace = write("t.jsonl", two_sessions);
  ASSERT_EQ(part_of("a"), TracePart::a);
  ASSERT_EQ(part_of("b"), TracePart::b);
  const auto tokens = [&](const Arguments& more) {
    return number(result(joined({"--cost", "linear:0", trace}, more)), "tokens");
  };
  EXPECT_EQ(tokens({"--part", "a"}), 9);
  EXPECT_EQ(tokens({"--part", "b"}), 2);
  EXPECT_EQ(tokens({"--part", "all"}), 11);
  EXPECT_EQ(tokens({"--limit", "1"}), 9);
  EXPECT_EQ(word(result({"--part", "b", trace}), "part"), "b");
  refuses({"--limit", "1", "--part", "b", trace}, "no session belongs to that part");
}

TEST_F(Tool, TakesCurvesFromFiles) {
  write("mine.json",
        R"({"version": 1, "base_ns": 10, "points": [{"sequences": 1, "context": 0, "rows": 9, "ns": 50}]})");
  const Ran ran =
      run({"--cost", "mine.json", "--strategy", "hf", "--strategy", "none", write("t.jsonl", two_sessions)});
  EXPECT_EQ(ran.status, 0) << ran.error;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("speedup, mine"), HasSubstr("mine = mine.json")));
}

TEST_F(Tool, CountsOnceForEachCurveThatDraftsDependOn) {
  const Ran ran = run({"--strategy", "ngram", "--strategy", "hf", "--cost", "linear:0", "--cost", "linear:1",
                       write("t.jsonl", two_sessions)});
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\nngram             s=0 "), HasSubstr("\n                  s=1 "),
                             HasSubstr("\nhf                any ")));
}

TEST_F(Tool, WritesToAFile) {
  const std::string trace = write("t.jsonl", two_sessions);
  const std::string output = (folder_ / "out.json").generic_string();
  const Ran ran = run({"--format", "json", "--output", output, trace});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, IsEmpty());
  tools::Json json;
  EXPECT_FALSE(tools::parse_json(read(output), json));
}

TEST_F(Tool, LeavesTheOutputFileAloneWhenTheInputIsBad) {
  const std::string output = write("out.json", "old");
  EXPECT_EQ(run({"--output", output, write("t.jsonl", "{")}).status, 2);
  EXPECT_EQ(read(output), "old");
  const std::string fresh = (folder_ / "fresh.json").generic_string();
  EXPECT_EQ(run({"--output", fresh, write("t.jsonl", "{")}).status, 2);
  EXPECT_FALSE(fs::exists(fresh));
  const fs::path link = folder_ / "link";
  std::error_code no_links;
  fs::create_symlink("fresh.json", link, no_links);
  if (no_links) return;
  EXPECT_EQ(run({"--output", link.generic_string(), write("t.jsonl", "{")}).status, 2);
  EXPECT_TRUE(fs::is_symlink(link)) << "what leads to a file that is not there yet stays as well";
  EXPECT_FALSE(fs::exists(fresh));
  EXPECT_EQ(run({"--output", link.generic_string(), write("t.jsonl", two_sessions)}).status, 0);
  EXPECT_FALSE(read(fresh).empty());
}

TEST_F(Tool, SaysThatATraceHasNothingToReplay) {
  const std::string empty =
      write("empty.jsonl", R"({"id":"a","category":"x","turns":[{"prompt":[1,2],"output":[3]}]})");
  EXPECT_THAT(run({empty}).error, HasSubstr("empty.jsonl: nothing to replay: no turn has two output tokens or more"));
  const std::string some =
      write("some.jsonl", R"({"id":"a","category":"x","turns":[{"prompt":[1,2],"output":[3,4]}]})");
  EXPECT_EQ(run({some}).error, "");
  const std::string marked = write("marked.jsonl", "\xEF\xBB\xBF" + read(some));
  EXPECT_EQ(run({marked}).status, 0) << "a byte-order mark is skipped";
}

TEST_F(Tool, RefusesBadInputWithTwoAndOneSentence) {
  const std::string trace = write("t.jsonl", two_sessions);
  const std::string cut = write("cut.jsonl", std::string(two_sessions) + R"({"id":"c","category":"x","turns":[{"pro)");
  refuses({cut}, cut + ":3: column 36: the text ends inside this string");
  refuses({trace, folder_.generic_string() + "/missing.jsonl"}, "missing.jsonl: cannot be opened");
  refuses({folder_.generic_string()}, "is a directory");
  refuses({"--cost", "cubic", trace}, "the choices are linear:S");
  refuses({"--cost", write("c.json", "{"), trace}, "c.json:1: column 2: ");
  const std::string curve = write("curve.json", "{\"base_ns\": 1,\n \"points\": []}\n");
  refuses({curve}, "reprise-replay: " + curve + " is a cost curve, not a trace; give it with --cost\n");
  refuses({trace, curve}, curve + " is a cost curve, not a trace");
  const std::string slow =
      R"({"version": 1, "base_ns": 1e20, "points": [{"sequences": 1, "context": 0, "rows": 2, "ns": 2e20}]})";
  refuses({"--cost", write("slow.json", slow), trace}, "slow.json: a point of a cost curve needs a time");
  EXPECT_EQ(run({"--cost", write("slow.json", slow), "--strategy", "hf", trace}).status, 0)
      << "control need not know it";
  refuses({"--memory-bytes", "5", trace}, "--memory-bytes needs --memory past");
  if (tools::machine_memory() < std::uint64_t{1} << 40)
    refuses({"--memory", "past", "--memory-bytes", "1099511627776", trace}, "this machine has ");
  refuses({"--output", (folder_ / "no" / "such" / "x").generic_string(), trace}, "cannot be written");
  refuses({"--frobnicate"}, "there is no option --frobnicate");
  refuses({"--by-category", write("all.jsonl", R"({"id":"a","category":"all","turns":[{"prompt":[1],"output":[2]}]})")},
          "category: \"all\" names the sum");
}

TEST_F(Tool, NeverReplacesAFileThatItReads) {
  const std::string trace = write("t.jsonl", two_sessions);
  const std::string curve_text =
      R"({"version": 1, "base_ns": 10, "points": [{"sequences": 1, "context": 0, "rows": 2, "ns": 11}]})";
  const std::string curve = write("c.json", curve_text);
  refuses({"--output", trace, trace}, "--output " + trace + ": would replace the trace " + trace);
  refuses({"--output", curve, "--cost", curve, trace}, "would replace the curve");
  refuses({"--output", curve, "--cost", "c.json", trace}, "would replace the curve");  // the curve is a bundled one
  for (const std::string& input : {trace, curve})
    refuses({"--memory", "past", "--cost", curve, trace, "--snapshot-out", input},
            "--snapshot-out " + input + ": would replace the ");
  const std::string bundled = write("bundled/b.jsonl", two_sessions);
  refuses({"--output", bundled}, "would replace the trace");
  EXPECT_EQ(read(trace) + read(curve) + read(bundled), two_sessions + curve_text + two_sessions);
}

TEST_F(Tool, ShowsControlCharactersEscaped) {
  const std::string hidden = "\\u001b[8m\\u009b2J";
  const std::string line = R"({"id":"a","category":")" + hidden + R"(","turns":[{"prompt":[1,2],"output":[1,2,1]}]})";
  const std::string trace = write("t\x1b[1mrace.jsonl", line + "\n");
  const auto is_clean = [](const std::string& text) {
    for (const char c : text)
      if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) return false;
    return text.find("\xc2\x9b") == std::string::npos;
  };
  const Ran table = run({trace, "--by-category"});
  EXPECT_EQ(table.status, exit_done) << table.error;
  EXPECT_TRUE(is_clean(table.out)) << table.out;
  EXPECT_THAT(table.out, AllOf(HasSubstr("t\\x1b[1mrace.jsonl"), HasSubstr("category \\x1b[8m\\xc2\\x9b2J")));
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{trace + "\x1b"}, {"--\x1b[1m"}, {trace, "--strategy", "\x07"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, exit_bad_input);
    EXPECT_TRUE(is_clean(ran.error)) << ran.error;
  }
  std::vector<Row> rows(1);
  rows[0].trace = "\x1b[1m";
  rows[0].category = all_categories;
  rows[0].counts.fault = "turn 1";
  std::ostringstream error;
  EXPECT_EQ(report_faults(rows, error), exit_failed);
  EXPECT_TRUE(is_clean(error.str())) << error.str();
}

TEST(Progress, ShowsControlCharactersEscaped) {
  std::ostringstream out;
  tools::Progress progress(&out, 80);
  progress.start("a\x1b[1mb", 3);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("a\\x1b[1mb"), Not(HasSubstr("\x1b[1m"))));
}

TEST_F(Tool, HelpsAndLists) {
  EXPECT_EQ(run({"--help"}).out, help_text());
  EXPECT_THAT(run({"--version"}).out, StartsWith("reprise-replay 0."));
  const Ran list = run({"--list"});
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.out, AllOf(HasSubstr("ngram-simple"), HasSubstr("n=3"), HasSubstr("(0..64)"),
                              HasSubstr("rolling_hash | suffix_array | naive"), HasSubstr("linear:S"),
                              HasSubstr("FILE.json"), HasSubstr("(the default)")));
  std::istringstream lines(list.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST_F(Tool, FindsTheBundledTraces) {
  Ran ran = run({});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("nowhere"), HasSubstr("bundled"), HasSubstr("give the path of a trace")));
  write("bundled/b.jsonl", two_sessions);
  write("bundled/a.jsonl", two_sessions);
  write("bundled/README.md", "not a trace");
  ran = run({"--format", "json", "--cost", "linear:0"});
  EXPECT_EQ(ran.status, 0) << ran.error;
  EXPECT_LT(ran.out.find("bundled/a.jsonl"), ran.out.find("bundled/b.jsonl"));
  EXPECT_THAT(ran.out, Not(HasSubstr("README")));
}

TEST(BundledTraces, LieBesideTheInstalledProgramOrWhereItWasBuilt) {
  const auto folders = tools::bundled_folders("/opt/x/bin/reprise-replay", "traces");
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0].generic_string(), "/opt/x/share/reprise/traces");
  EXPECT_EQ(tools::find_traces({folders[1]}).size(), 8U) << "the build tree";
  EXPECT_TRUE(fs::exists(tools::bundled_folders("x", "profiles")[1] / "step-8.json"));
}

TEST(BundledTraces, AreFoundFromTheRunningProgram) { EXPECT_TRUE(fs::exists(tools::program_path("x"))); }

TEST(Report, ShowsAnOutputThatDiffers) {
  const std::vector<CostCurve> curves = {CostCurve::parse("linear:0")};
  std::vector<Row> rows(1);
  rows[0].category = all_categories;
  rows[0].counts.charges = {{1.0, 0.0}};
  rows[0].counts.fault = "turn 1";
  std::ostringstream table;
  write_table(table, {rows, curves}, {});
  EXPECT_THAT(table.str(), HasSubstr("NOT LOSSLESS"));
  std::ostringstream json;
  write_json(json, Report{rows, curves});
  EXPECT_THAT(json.str(), HasSubstr("\"lossless\": false"));
  std::ostringstream error;
  EXPECT_EQ(report_faults(rows, error), exit_failed);
  EXPECT_THAT(error.str(), HasSubstr("NOT LOSSLESS"));
  rows[0].counts.fault.clear();
  EXPECT_EQ(report_faults(rows, error), exit_done);
}

TEST(Report, MakesNumbersOfNothing) {
  const Counts none;
  EXPECT_EQ(ratios(none).mat, 0);
  Row row;
  row.counts.charges.resize(1);
  EXPECT_EQ(speedup(row), 1);
}

}  // namespace
}  // namespace reprise::replay::replay_tool_test
