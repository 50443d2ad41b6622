// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "replay/options.hpp"
#include "replay/page.hpp"
#include "replay/replay_tool.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise_testing/random.hpp"
#if !defined(_WIN32)
#include "support/file_size_limit.hpp"
#endif

namespace reprise::replay::replay_page_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs the tool with --report, with a folder of its own for each test.
class Page : public ReplayToolTest {
 protected:
  Page() { report_ = path("report.html"); }

  struct WithPage : Ran {
    std::string page;
    tools::Json data;
  };
  WithPage paged(const Arguments& arguments) {
    WithPage ran{run(joined({"--report", report_}, arguments)), {}, {}};
    if (fs::exists(report_)) ran.page = read(report_);
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    if (const std::size_t at = ran.page.find(open); at != std::string::npos) {
      const std::size_t from = at + open.size();
      const std::string json = ran.page.substr(from, ran.page.find("</script>", from) - from);
      if (const auto wrong = tools::parse_json(json, ran.data)) ADD_FAILURE() << wrong->message;
    }
    return ran;
  }
  /// Sessions that repeat themselves more or less often.
  static std::string sessions(std::size_t count, std::size_t categories, const std::string& prefix = "s") {
    testing::Random random(5);
    std::ostringstream text;
    for (std::size_t i = 0; i < count; ++i) {
      const auto tokens = [&](std::size_t length) {
        std::string list;
        for (std::size_t j = 0; j < length; ++j)
          list += (j == 0 ? "" : ",") + std::to_string(random.chance(10 + i % 80) ? random.below(50) : j % 7);
        return list;
      };
      text << "{\"id\":" << tools::quote_json(prefix + std::to_string(i))
           << ",\"category\":" << tools::quote_json("c" + std::to_string(i % categories)) << ",\"turns\":[{\"prompt\":["
           << tokens(40) << "],\"output\":[" << tokens(60) << "]},{\"prompt\":[" << tokens(5) << "],\"output\":["
           << tokens(30) << "]}]}\n";
    }
    return text.str();
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
  }

  std::string report_;
};

TEST_F(Page, HasTheResultsWithTheirSessionsAndPasses) {
  const std::string trace = write("t.jsonl", sessions(30, 3));
  const WithPage ran = paged({"--format", "json", "--cost", "linear:0.02", "--control", "auto", "--control",
                              "hindsight", "--ceiling", "--strategy", "ngram", trace});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const tools::Json::Array rows = results_in(ran.out);
  const tools::Json::Array& shown = *ran.data.find("results")->array();
  ASSERT_EQ(shown.size(), 3U) << "control by cost, hindsight, and the ceiling";
  EXPECT_EQ(untimed(shown), untimed(rows));
  EXPECT_NEAR(number(ran.data, "hindsight"), number(rows[1], "speedup"), 1e-12);
  EXPECT_NEAR(number(ran.data, "ceiling"), number(rows[2], "speedup"), 1e-12);

  double tokens = 0;
  double cost = 0;
  double worst = 0;
  for (const tools::Json& session : *ran.data.find("sessions")->array()) {
    const tools::Json::Array& fields = *session.array();
    tokens += fields[2].number()->value;
    cost += fields[3].number()->value;
    worst = std::max(worst, fields[4].number()->value);
  }
  EXPECT_EQ(tokens, number(rows[0], "tokens"));
  EXPECT_NEAR(tokens / cost, number(rows[0], "speedup"), 1e-12);
  EXPECT_EQ(worst, number(rows[0], "worst_loss"));

  const auto total = [&](const std::string& list, const std::string& member) {
    double all = 0;
    for (const tools::Json& item : *ran.data.find(list)->array()) all += number(item, member);
    return all;
  };
  EXPECT_EQ(total("categories", "tokens"), tokens);
  EXPECT_EQ(total("positions", "tokens"), tokens);
  EXPECT_EQ(total("positions", "passes"), number(rows[0], "passes"));
  EXPECT_EQ(total("sources", "sent"), number(rows[0], "drafted"));
  EXPECT_EQ(total("sources", "accepted"), number(rows[0], "accepted"));
}

TEST_F(Page, KnowsEveryReason) {
  for (std::size_t i = 0; i < cut_count; ++i)
    EXPECT_THAT(page_template(), HasSubstr("    " + std::string(to_string(static_cast<Cut>(i))) + ": \""));
}

TEST_F(Page, HasTheAdvice) {
  const std::string trace = write("t.jsonl", sessions(30, 3));
  const WithPage ran = paged({"--cost", "linear:0.02", trace});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const tools::Json& advice = *ran.data.find("advice");
  const std::string advised = output({"--advise", "--cost", "linear:0.02", trace});
  EXPECT_THAT(advised, EndsWith(word(advice, "summary") + "\n" + word(advice, "code")));
  EXPECT_EQ(advice.find("tried")->array()->size(), 11U);

  std::string ones = "1";
  for (int i = 0; i < 10'000; ++i) ones += ",1";
  std::string text;
  for (int i = 0; i < 24; ++i)
    text +=
        R"({"id":")" + std::to_string(i) + R"(","category":"c","turns":[{"prompt":[1],"output":[)" + ones + "]}]}\n";
  const WithPage many = paged({"--cost", "linear:0.02", "--strategy", "none", write("t.jsonl", text)});
  EXPECT_EQ(number(*many.data.find("advice"), "every"), 3) << "of many tokens, it takes a part";
  EXPECT_EQ(number(*many.data.find("advice"), "sessions"), 8);
}

TEST_F(Page, HasTheReplaysBesideAHead) {
  const WithPage ran = paged({"--head-cost", "0.1", "--head-cost", "0.3", "--cost", "linear:0.02",
                              REPRISE_SOURCE_DIR "/tests/replay/made_up_heads.jsonl"});
  EXPECT_EQ(ran.status, exit_done) << ran.error;
  const tools::Json* heads = ran.data.find("heads");
  ASSERT_NE(heads, nullptr);
  EXPECT_EQ(heads->array()->size(), 8U) << "two costs, and four ways for chains";
  for (const std::string_view way : head_way_names)
    EXPECT_THAT(page_template(), HasSubstr("    " + std::string(way) + ": \""));
}

TEST_F(Page, DoesNotChangeTheResults) {
  const std::string trace = write("t.jsonl", sessions(6, 2));
  const std::vector<std::vector<std::string>> settings = {
      {}, {"--memory", "past"}, {"--cost-known", "learned"}, {"--cost-known", "carried"}, {"--threads", "2"}};
  for (const std::vector<std::string>& setting : settings) {
    const Arguments arguments =
        joined(setting, {"--format", "json", "--cost", "linear:0.1", "--strategy", "ngram", trace, trace});
    EXPECT_EQ(untimed(results_in(paged(arguments).out)), untimed(results_in(output(arguments))));
  }
}

TEST_F(Page, ComparesTheDefaultWithOtherSystems) {
  const std::string trace = write("t.jsonl", sessions(4, 1));
  const auto compared = [&](const Arguments& more) {
    std::vector<std::string> names;
    for (const tools::Json& row :
         results_in(paged(joined({"--format", "json", "--cost", "linear:0", trace}, more)).out))
      names.push_back(word(row, "strategy"));
    return names;
  };
  std::vector<std::string> all = {std::string(default_strategy)};
  all.insert(all.end(), std::begin(default_rivals), std::end(default_rivals));
  EXPECT_GT(all.size(), 3U);
  EXPECT_EQ(compared({}), all);
  EXPECT_EQ(compared({"--strategy", "copy"}), std::vector<std::string>{"copy"});
  EXPECT_EQ(compared({"--memory", "past", "--snapshot-out", path("m")}), std::vector<std::string>{"ngram"})
      << "a snapshot is of one strategy";
  EXPECT_EQ(results({"--cost", "linear:0", trace}).size(), 1U) << "without a page";
}

TEST_F(Page, HasTheWordsOfTheBundledTraces) {
  fs::create_directories(folder_ / "bundled");
  const std::string trace = write("bundled/t.jsonl", sessions(4, 1));
  write("bundled/vocabulary.json", R"({"\u0120one": 1, "two": 2})");
  const auto words = [&](const Arguments& more) {
    const WithPage ran = paged(joined({"--cost", "linear:0.1", "--strategy", "ngram"}, more));
    EXPECT_EQ(ran.status, 0) << ran.error;
    return *ran.data.find("words");
  };
  EXPECT_EQ(word(words({}), "1"), " one");
  EXPECT_EQ(word(words({trace}), "2"), "two");
  EXPECT_EQ(word(words({"--vocabulary", write("v.json", R"(["a", "b"])")}), "1"), "b");
  const std::string mine = write("mine.jsonl", sessions(4, 1));
  EXPECT_TRUE(words({mine}).object()->keys.empty()) << "the tokens of another model may have the same ids";
  EXPECT_TRUE(words({trace, mine}).object()->keys.empty());
  fs::remove(folder_ / "bundled" / "vocabulary.json");
  EXPECT_TRUE(words({}).object()->keys.empty());
}

TEST_F(Page, ShownSessionsHoldTheRecordedTokens) {
  const std::string text = sessions(40, 3);
  const std::vector<std::vector<std::string>> settings = {{}, {"--memory", "past"}, {"--cost-known", "carried"}};
  for (const auto& setting : settings) {
    const WithPage ran = paged(joined(setting, {"--report-session", "s7", write("t.jsonl", text)}));
    ASSERT_EQ(ran.status, 0) << ran.error;
    const tools::Json::Array& shown = *ran.data.find("shown")->array();
    ASSERT_GE(shown.size(), 9U);
    EXPECT_EQ(number(shown.front(), "session"), 7);
    for (const tools::Json& session : shown) {
      EXPECT_TRUE(*session.find("complete")->boolean());
      double tokens = 0;
      for (const tools::Json& turn : *session.find("turns")->array()) {
        const tools::Json::Array& output = *turn.find("output")->array();
        std::size_t at = 1;
        for (const tools::Json& pass : *turn.find("passes")->array()) {
          const tools::Json::Array& fields = *pass.array();
          // The accepted nodes spell the recorded tokens.
          std::size_t accepted = 0;
          if (fields.size() > 2)
            for (std::size_t i = 0; i < fields[5].string()->size(); ++i) {
              if ((*fields[5].string())[i] != 'a') continue;
              EXPECT_EQ(*(*fields[2].array())[i].number()->integer, *output[at + accepted++].number()->integer);
            }
          const auto committed = static_cast<std::size_t>(*fields[0].number()->integer);
          EXPECT_LE(accepted, committed);
          at += committed;
          tokens += static_cast<double>(committed);
        }
        EXPECT_EQ(at, output.size());
      }
      const auto index = static_cast<std::size_t>(number(session, "session"));
      EXPECT_EQ(tokens, (*(*ran.data.find("sessions")->array())[index].array())[2].number()->value);
    }
  }
}

TEST_F(Page, EscapesHostileNames) {
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                            "<img src=x onerror=alert(2)>",
                                            "\" onmouseover=\"alert(3)",
                                            "' autofocus onfocus='alert(4)",
                                            "{{data}}",
                                            "]]><!--<script>",
                                            "a\xe2\x80\xa8"
                                            "b\xe2\x80\xae"
                                            "c",
                                            "&lt;&amp;"};
  std::string text;
  for (const std::string& name : hostile)
    text += "{\"id\":" + tools::quote_json(name) + ",\"category\":" + tools::quote_json(name) +
            ",\"turns\":[{\"prompt\":[1,2,3,1,2,3],\"output\":[1,2,3,1,2,3,1,2]}]}\n";
  std::string words = "[\"zero\"";
  for (const std::string& name : hostile) words += "," + tools::quote_json(name);
  const std::string trace = write("<b>t&.jsonl", text);
  const WithPage ran = paged({"--vocabulary", write("v.json", words + "]"), trace});
  ASSERT_EQ(ran.status, 0) << ran.error;
  // Names are in the data alone, where they are no markup: the page itself has two scripts.
  EXPECT_EQ(count(ran.page, "<script"), 2U);
  EXPECT_EQ(count(ran.page, "</script>"), 2U);
  for (const char* part : {"<img", "<!--", "<b>", "\xe2\x80\xa8"}) EXPECT_EQ(count(ran.page, part), 0U) << part;
  EXPECT_EQ(count(ran.page, "\"use strict\""), 1U) << "a name was taken for a placeholder";
  ASSERT_EQ(ran.data.find("shown")->array()->size(), hostile.size());
  for (std::size_t i = 0; i < hostile.size(); ++i)
    EXPECT_EQ(*(*(*ran.data.find("sessions")->array())[i].array())[0].string(), hostile[i]);
  EXPECT_EQ(*ran.data.find("words")->find("1")->string(), hostile[0]);
}

TEST_F(Page, LoadsNothing) {
  const WithPage ran = paged({write("t.jsonl", sessions(3, 1))});
  EXPECT_THAT(ran.page,
              AllOf(Not(HasSubstr("<link rel=\"stylesheet")), Not(HasSubstr("src=")), Not(HasSubstr("@import")),
                    Not(HasSubstr("url(")), Not(HasSubstr("https:")), Not(HasSubstr("fetch("))));
  EXPECT_THAT(ran.page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(count(ran.page, "http:"), 1U) << "the name of the SVG namespace alone";
}

TEST_F(Page, StaysSmallForLongSessions) {
  testing::Random random(2);
  std::string text;
  for (int session = 0; session < 6; ++session) {
    std::string output;
    for (int i = 0; i < 20000; ++i) output += (i == 0 ? "" : ",") + std::to_string(100000 + random.below(40));
    text += "{\"id\":\"" + std::to_string(session) + "\",\"category\":\"c\",\"turns\":[{\"prompt\":[1],\"output\":[" +
            output + "]}]}\n";
  }
  const WithPage ran = paged({"--cost", "linear:0", "--strategy", "hf:k=10", write("t.jsonl", text)});
  ASSERT_EQ(ran.status, 0) << ran.error;
  EXPECT_LT(ran.page.size(), 3'000'000U);
  EXPECT_FALSE(*ran.data.find("shown")->array()->front().find("complete")->boolean());
}

#if !defined(_WIN32)
TEST_F(Page, AFullDiskLeavesTheOldFile) {
  const std::string trace = write("t.jsonl", sessions(2, 1));
  const std::string old = paged({trace}).page;
  ASSERT_GT(old.size(), 10'000U);
  {
    const testing::FileSizeLimit limit(10'000);
    const WithPage ran = paged({"--cost", "linear:0.3", trace});
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.error, HasSubstr(report_ + ": could not be written"));
    EXPECT_EQ(ran.page, old);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "nothing is left";
  }
  // A link stays a link.
  fs::rename(report_, folder_ / "real.html");
  fs::create_symlink(folder_ / "real.html", report_);
  EXPECT_NE(paged({"--cost", "linear:0.3", trace}).page, old);
  EXPECT_TRUE(fs::is_symlink(report_));
}
#endif

}  // namespace
}  // namespace reprise::replay::replay_page_test
