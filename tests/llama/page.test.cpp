// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "compare.hpp"
#include "support/folder_test.hpp"
#include "support/llama_stand_in/stand_in.hpp"
#include "tool.hpp"
#if !defined(_WIN32)
#include "support/file_size_limit.hpp"
#endif

namespace reprise::llama::llama_page_test {
namespace {

namespace fs = std::filesystem;
using llama_stand_in::ModelText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs the program with --compare and --report over the stand-in, in a folder of its own.
class LlamaPage : public testing::FolderTest {
 protected:
  LlamaPage() {
    llama_stand_in::settings() = {};
    model_ = write("model.gguf", ModelText().text());
    report_ = path("report.html");
  }
  ~LlamaPage() override { llama_stand_in::settings() = {}; }

  struct Ran {
    int status = 0;
    std::string error;
    std::string page;
    tools::Json data;     ///< of the page
    tools::Json results;  ///< of --format json
  };
  Ran run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"--model", model_, "--context", "512", "--compare", "--format", "json", "--report", report_});
    std::ostringstream out;
    std::ostringstream error;
    Ran ran;
    ran.status = run_tool(arguments, {out, error});
    ran.error = error.str();
    ran.page = fs::exists(report_) ? read(report_) : "";
    if (ran.status != exit_bad_input) {
      EXPECT_FALSE(parse_json(out.str(), ran.results)) << out.str() << ran.error;
    }
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    if (const std::size_t at = ran.page.find(open); at != std::string::npos) {
      const std::size_t from = at + open.size();
      EXPECT_FALSE(parse_json(ran.page.substr(from, ran.page.find("</script>", from) - from), ran.data));
    }
    return ran;
  }
  std::string prompts(std::size_t sessions = 6, std::size_t categories = 2) const {
    std::string text;
    for (std::size_t i = 0; i < sessions; ++i)
      text += "{\"id\": \"s" + std::to_string(i) + "\", \"category\": \"c" + std::to_string(i % categories) +
              "\", \"turns\": [\"abcabcabc" + std::to_string(i) + "\", \"abc again\"]}\n";
    return write("p.jsonl", text);
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
  }
  static std::string shown(const std::string& page, const std::string& id) {
    const std::string from = "id=\"" + id + "\">";
    const std::size_t at = page.find(from);
    if (at == std::string::npos) return "not found";
    return page.substr(at + from.size(), page.find('<', at) - at - from.size());
  }

  std::string model_;
  std::string report_;
};

double number(const tools::Json& json, const char* name) { return json.find(name)->number()->value; }

TEST_F(LlamaPage, HasTheFiguresOfTheResults) {
  const Ran ran = run({"--prompts", prompts(), "--max-tokens", "40", "--strategy", "ngram", "--strategy", "hf",
                       "--cost", "linear:0.1", "--cost-model", "linear:0.1", "--repeat", "2"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  const auto& strategies = *ran.results.find("strategies")->array();
  const auto& named = *ran.data.find("strategies")->array();
  ASSERT_EQ(named.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(*named[i].find("name")->string(), *strategies[i].find("strategy")->string());
    EXPECT_NEAR(number(named[i], "speedup"), number(*strategies[i].find("total"), "speedup"), 1e-6);
    EXPECT_THAT(ran.page, HasSubstr("<code>" + *named[i].find("name")->string() +
                                    "</code></th><td data-label=\"Speedup: \" role=\"cell\">" +
                                    tools::decimal(number(named[i], "speedup"), 3)));
  }
  const tools::Json& total = *strategies[0].find("total");
  EXPECT_EQ(shown(ran.page, "speedup"), tools::decimal(number(named[0], "speedup"), 3));
  double worst = 1e9;
  for (const tools::Json& session : *strategies[0].find("sessions")->array())
    worst = std::min(worst, number(session, "speedup"));
  EXPECT_EQ(shown(ran.page, "worst-session"), tools::decimal(worst, 3) + "×");
  EXPECT_EQ(shown(ran.page, "identical"), "6");
  EXPECT_EQ(shown(ran.page, "verdict"), "identical");
  for (const tools::Json& category : *strategies[0].find("categories")->array())
    EXPECT_THAT(ran.page, HasSubstr("<bdi>" + *category.find("category")->string() +
                                    "</bdi></th><td data-label=\"Speedup: \" role=\"cell\">" +
                                    tools::decimal(number(category, "speedup"), 3)));
  const auto bar = [&](const std::string& name, double value) {
    return HasSubstr("\">" + name + "</th><td data-label=\"Speedup: \" role=\"cell\">" + tools::decimal(value, 3));
  };
  EXPECT_THAT(ran.page, bar("Tokens per pass", number(total, "mat")));
  EXPECT_THAT(ran.page, bar("Under --cost", number(total, "speedup_under_cost")));
  EXPECT_THAT(ran.page, AllOf(HasSubstr("\">Predicted</th>"), HasSubstr("the curve that control was told"),
                              Not(HasSubstr("class=\"fault\"")), Not(HasSubstr("nan"))));
}

TEST_F(LlamaPage, RowsAreThoseOfTheStatistics) {
  const Ran ran = run({"--prompts", prompts(), "--max-tokens", "60", "--strategy", "hf"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::uint64_t passes = 0;
  const tools::Json& strategy = ran.results.find("strategies")->array()->front();
  for (const tools::Json& session : *strategy.find("sessions")->array()) {
    const tools::Json& statistics = *session.find("with")->find("statistics");
    drafted += static_cast<std::uint64_t>(number(statistics, "drafted"));
    accepted += static_cast<std::uint64_t>(number(statistics, "accepted"));
    passes += static_cast<std::uint64_t>(number(statistics, "passes"));
  }
  ASSERT_GT(accepted, 0U);
  EXPECT_THAT(ran.page, HasSubstr("</span>accepted: " + tools::grouped(accepted) + " ("));
  EXPECT_THAT(ran.page, HasSubstr("</span>sent and rejected: " + tools::grouped(drafted - accepted) + " ("));
  EXPECT_THAT(ran.page, HasSubstr("<p>All " + tools::grouped(passes) + " passes proposed "));
  EXPECT_THAT(ran.page, HasSubstr("The control of this strategy does not use costs"));
}

TEST_F(LlamaPage, ShowsTheTokensOfTheSessions) {
  const Ran ran = run({"--prompts", prompts(), "--max-tokens", "40", "--strategy", "hf", "--report-session", "s3"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  const auto& sessions = *ran.data.find("sessions")->array();
  ASSERT_EQ(sessions.size(), 6U);
  EXPECT_EQ(*sessions.front().find("id")->string(), "s3");
  EXPECT_EQ(number(ran.data, "prefilled"), 0);
  std::size_t drafted = 0;
  for (const tools::Json& session : sessions) {
    const auto& turns = *session.find("turns")->array();
    ASSERT_EQ(turns.size(), 2U);
    for (const tools::Json& turn : turns) {
      const auto& output = *turn.find("output")->array();
      EXPECT_EQ(output.size(), 40U);
      std::size_t at = 0;
      for (const tools::Json& pass : *turn.find("passes")->array()) {
        const auto& fields = *pass.array();
        std::size_t accepted = 0;
        if (fields.size() > 2)
          for (std::size_t i = 0; i < fields[5].string()->size(); ++i) {
            if ((*fields[5].string())[i] != 'a') continue;
            EXPECT_EQ(*(*fields[2].array())[i].number()->integer, *output[at + accepted++].number()->integer);
          }
        drafted += accepted;
        at += static_cast<std::size_t>(*fields[0].number()->integer);
      }
      EXPECT_EQ(at, output.size());
    }
  }
  EXPECT_GT(drafted, 0U);
  EXPECT_FALSE(ran.data.find("words")->object()->keys.empty()) << "the words of the model";
}

TEST_F(LlamaPage, SaysThatTextsDiffer) {
  llama_stand_in::settings().row_count_noise = 3;
  const Ran ran = run({"--prompts", prompts(), "--max-tokens", "60", "--strategy", "hf", "--epsilon", "0"});
  ASSERT_EQ(ran.status, exit_wrong) << ran.error;
  EXPECT_THAT(ran.page, AllOf(HasSubstr("<p class=\"fault\" role=\"alert\">WRONG: "),
                              HasSubstr("First difference of each text"), HasSubstr("no rounding explains it")));
  EXPECT_EQ(shown(ran.page, "verdict"), "wrong");
  const auto total = ran.results.find("strategies")->array()->front().find("sessions")->array();
  std::size_t identical = 0;
  for (const tools::Json& session : *total) identical += *session.find("verdict")->string() == "identical" ? 1 : 0;
  EXPECT_EQ(shown(ran.page, "identical"), std::to_string(identical));
}

TEST_F(LlamaPage, SaysHowMuchTheTimesVary) {
  const std::string file = prompts(3);
  EXPECT_THAT(run({"--prompts", file, "--max-tokens", "20"}).page, HasSubstr("Every session ran once"));
  const std::string page = run({"--prompts", file, "--max-tokens", "20", "--repeat", "3"}).page;
  EXPECT_THAT(page, AllOf(HasSubstr("Each repetition of all sessions"), HasSubstr("In the median session"),
                          HasSubstr("in 3 repetitions"), HasSubstr("the curve that control learned")));
  EXPECT_EQ(count(page.substr(page.find("Each repetition of all")), "<th scope=\"row\">3</th>") > 0, true);
}

TEST_F(LlamaPage, LeavesRepeatedSessionsOutOfTheSum) {
  const Ran ran = run({"--prompts", prompts(), "--max-tokens", "20", "--again", "3"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_THAT(ran.page, AllOf(HasSubstr("<p>6 sessions, "), HasSubstr("<bdi>repeated</bdi>")));
  const tools::Json& total = *ran.results.find("strategies")->array()->front().find("total");
  EXPECT_EQ(shown(ran.page, "speedup"), tools::decimal(number(total, "speedup"), 3));
}

TEST_F(LlamaPage, EscapesHostileNames) {
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                            "<img src=x onerror=alert(2)>",
                                            "\" onmouseover=\"alert(3)",
                                            "{{script}}",
                                            "]]><!--<script>",
                                            "a\xe2\x80\xa8"
                                            "b\xe2\x80\xae"
                                            "c"};
  std::string text;
  for (const std::string& name : hostile)
    text += "{\"id\": " + tools::quote_json(name) + ", \"category\": " + tools::quote_json(name) + ", \"turns\": [" +
            tools::quote_json(name + name) + "]}\n";
  const Ran ran = run({"--prompts", write("<b>p.jsonl", text), "--max-tokens", "20", "--strategy", "hf"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  const std::size_t data = ran.page.find("id=\"data\">");
  const std::string markup = ran.page.substr(0, data) + ran.page.substr(ran.page.find("</script>", data));
  EXPECT_EQ(count(ran.page, "<script"), 2U);
  EXPECT_EQ(count(ran.page, "</script>"), 2U);
  EXPECT_EQ(count(ran.page, "<img"), 0U);
  EXPECT_EQ(count(ran.page, "<!--"), 0U);
  EXPECT_EQ(count(markup, "\" onmouseover=\"alert"), 0U);
  EXPECT_EQ(count(ran.page, "\xe2\x80\xa8"), 0U);
  EXPECT_EQ(count(ran.page, "\"use strict\""), 1U);
  EXPECT_THAT(ran.page, HasSubstr("&lt;img src=x onerror=alert(2)&gt;"));
  EXPECT_EQ(ran.data.find("sessions")->array()->size(), hostile.size());
}

TEST_F(LlamaPage, FoldsThousandsOfCategories) {
  const Ran ran = run({"--prompts", prompts(2000, 2000), "--max-tokens", "2", "--raw"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_THAT(ran.page, AllOf(HasSubstr("1976 others"), HasSubstr("The 200 slowest of 2,000 sessions")));
  EXPECT_LT(ran.page.size(), 250'000U);
  EXPECT_LE(ran.data.find("sessions")->array()->size(), 24U);
}

TEST_F(LlamaPage, WorksForOneSession) {
  const Ran ran = run({"--prompt", "abcabc", "--max-tokens", "1"});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_THAT(ran.page,
              AllOf(HasSubstr("it needs at least two sessions"), Not(HasSubstr("nan")), Not(HasSubstr("inf\""))));
}

TEST_F(LlamaPage, IsRefusedBeforeAnythingRuns) {
  const std::string file = prompts();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--model", model_, "--context", "512", "--prompts", file});
    std::ostringstream out;
    std::ostringstream error;
    EXPECT_EQ(run_tool(arguments, {out, error}), exit_bad_input);
    EXPECT_EQ(out.str(), "");
    EXPECT_EQ(llama_stand_in::settings().decodes, 0U);
    return error.str();
  };
  const std::string nowhere = (folder_ / "none" / "r.html").generic_string();
  EXPECT_THAT(refused({"--compare", "--report", nowhere}),
              HasSubstr("--report " + nowhere + ": cannot be written; does the folder exist?"));
  EXPECT_THAT(refused({"--compare", "--report", folder_.generic_string()}), HasSubstr("cannot be written"));
  EXPECT_THAT(refused({"--compare", "--report", file}), HasSubstr("is given for something else as well"));
  EXPECT_THAT(refused({"--compare", "--report", report_, "--output", report_}), HasSubstr("is given for something"));
  EXPECT_THAT(refused({"--report", report_}), HasSubstr("--report is an option of --compare"));
  EXPECT_THAT(refused({"--compare", "--report-session", "s1"}), HasSubstr("needs --report"));
  EXPECT_THAT(refused({"--compare", "--report", report_, "--report-session", "zzz"}),
              HasSubstr("--report-session zzz: no session that is run has this id"));
  EXPECT_FALSE(fs::exists(report_));
}

#if !defined(_WIN32)
TEST_F(LlamaPage, AFullDiskLeavesTheOldFile) {
  const std::string file = prompts();
  const std::string old = run({"--prompts", file, "--max-tokens", "20"}).page;
  ASSERT_GT(old.size(), 10'000U);
  const testing::FileSizeLimit limit(10'000);
  const Ran ran = run({"--prompts", file, "--max-tokens", "30"});
  EXPECT_EQ(ran.status, exit_failed);
  EXPECT_THAT(ran.error, HasSubstr(report_ + ": could not be written"));
  EXPECT_EQ(ran.page, old);
}
#endif

TEST(TimedSession, HasTheSpeedupOfTheSums) {
  using std::chrono::nanoseconds;
  TimedSession all{100, 100, nanoseconds(1000), nanoseconds(3000)};
  EXPECT_DOUBLE_EQ(all.speedup(), 3);
  all += {100, 50, nanoseconds(3000), nanoseconds(3000)};  // a text that differs is compared by its time per token
  EXPECT_DOUBLE_EQ(all.speedup(), (200.0 / 4000) / (150.0 / 6000));
  EXPECT_DOUBLE_EQ(TimedSession().speedup(), 1);
}

}  // namespace
}  // namespace reprise::llama::llama_page_test
