// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "replay/page_html.hpp"
#include "replay/replay_tool.hpp"
#include "reprise_testing/random.hpp"
#if !defined(_WIN32)
#include "support/file_size_limit.hpp"
#endif

namespace reprise::replay::replay_page_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  static std::string between(const std::string& text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) return "not found";
    return text.substr(at + from.size(), text.find(to, at + from.size()) - at - from.size());
  }

  std::string report_;
};

TEST_F(Page, HasTheFiguresOfTheResults) {
  const std::string trace = write("t.jsonl", sessions(30, 3));
  const WithPage ran = paged({"--format", "json", "--strategy", "ngram", "--strategy", "hf", "--ceiling", "--control",
                              "auto", "--control", "hindsight", trace});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const tools::Json::Array rows = results_in(ran.out);
  const tools::Json::Array& curves = *ran.data.find("curves")->array();
  const tools::Json::Array& lines = *ran.data.find("lines")->array();
  ASSERT_EQ(curves.size(), 6U);
  ASSERT_EQ(lines.size(), 4U);
  std::size_t row = 0;
  for (const tools::Json& line : lines)
    for (std::size_t i = 0; i < curves.size(); ++i, ++row) {
      const tools::Json& result = rows[row];
      EXPECT_THAT(*line.find("name")->string(), StartsWith(*result.find("strategy")->string()));
      EXPECT_EQ(*curves[i].find("spec")->string(), *result.find("cost")->string());
      EXPECT_EQ((*line.find("speedups")->array())[i].number()->value, result.find("speedup")->number()->value);
    }
  const tools::Json& main = rows[2];
  EXPECT_EQ(ran.data.find("main")->number()->value, 2);
  const auto shown = [&](const std::string& id) { return between(ran.page, "id=\"" + id + "\">", "<"); };
  EXPECT_EQ(shown("speedup"), tools::decimal(main.find("speedup")->number()->value, 3));
  EXPECT_EQ(shown("worst-window"), tools::decimal(main.find("worst_loss")->number()->value, 1));
  const tools::Json& hindsight = rows[8];
  EXPECT_THAT(
      ran.page,
      HasSubstr("<th scope=\"row\" role=\"rowheader\">Hindsight</th><td data-label=\"Speedup: \" role=\"cell\">" +
                tools::decimal(hindsight.find("speedup")->number()->value, 3)));
  const tools::Json& ceiling = rows[26];
  EXPECT_EQ(*ceiling.find("strategy")->string(), "ceiling");
  EXPECT_THAT(ran.page,
              HasSubstr("<th scope=\"row\" role=\"rowheader\">Ceiling</th><td data-label=\"Speedup: \" role=\"cell\">" +
                        tools::decimal(ceiling.find("speedup")->number()->value, 3)));
}

TEST_F(Page, DoesNotChangeTheResults) {
  const std::string trace = write("t.jsonl", sessions(6, 2));
  const std::vector<std::vector<std::string>> settings = {
      {}, {"--memory", "past"}, {"--cost-known", "learned"}, {"--cost-known", "carried"}, {"--threads", "2"}};
  for (const std::vector<std::string>& setting : settings) {
    const Arguments arguments = joined(setting, {"--format", "json", "--cost", "linear:0.1", trace, trace});
    EXPECT_EQ(untimed(results_in(paged(arguments).out)), untimed(results_in(output(arguments))));
  }
}

TEST_F(Page, ShownSessionsHoldTheRecordedTokens) {
  const std::string text = sessions(40, 3);
  const std::vector<std::vector<std::string>> settings = {{}, {"--memory", "past"}, {"--cost-known", "carried"}};
  for (const auto& setting : settings) {
    const WithPage ran = paged(joined(setting, {"--report-session", "s7", write("t.jsonl", text)}));
    ASSERT_EQ(ran.status, 0) << ran.error;
    const tools::Json::Array& shown = *ran.data.find("sessions")->array();
    ASSERT_GE(shown.size(), 9U);
    EXPECT_EQ(*shown.front().find("id")->string(), "s7");
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
      EXPECT_EQ(tokens, session.find("tokens")->number()->value);
      const std::string id = *session.find("id")->string();
      EXPECT_THAT(text, HasSubstr("{\"id\":\"" + id + "\""));
    }
  }
}

TEST_F(Page, RowsAddUp) {
  const WithPage ran = paged({"--format", "json", "--cost", "linear:0.02", write("t.jsonl", sessions(30, 3))});
  const tools::Json result = results_in(ran.out).front();
  const auto whole = [&](const std::string& name) {
    return static_cast<std::uint64_t>(result.find(name)->number()->value);
  };
  EXPECT_THAT(ran.page, HasSubstr("</span>accepted: " + tools::grouped(whole("accepted")) + " ("));
  EXPECT_THAT(ran.page,
              HasSubstr("</span>sent and rejected: " + tools::grouped(whole("drafted") - whole("accepted")) + " ("));
  EXPECT_THAT(ran.page, HasSubstr("<p>All " + tools::grouped(whole("passes")) + " passes proposed "));
  const tools::Json::Object& cuts = *result.find("cuts")->object();
  for (std::size_t i = 0; i < cuts.keys.size(); ++i) {
    const auto passes = static_cast<std::uint64_t>(cuts.values[i].number()->value);
    if (passes == 0) continue;
    EXPECT_THAT(ran.page,
                AllOf(HasSubstr("<code>" + cuts.keys[i] + "</code>"),
                      HasSubstr("<td data-label=\"Passes: \" role=\"cell\">" + tools::grouped(passes) + "</td>")));
  }
}

TEST_F(Page, StatesTheShapeAndTheRankings) {
  const auto shape = [&](const Arguments& arguments) {
    const WithPage ran = paged(joined({"--cost", "linear:0.02"}, arguments));
    EXPECT_EQ(ran.status, 0) << ran.error;
    return between(ran.page, "<p id=\"shape\">", "</p>");
  };
  const std::string bare = write("t.jsonl", sessions(2, 1));
  EXPECT_EQ(
      shape({bare}),
      "Drafts are <strong>chains</strong>, <strong>without</strong> rankings of the target (top-k rows: the traces "
      "have none). An engine with two functions, <code>verify</code> and <code>commit</code>, gets this.");
  EXPECT_THAT(
      shape({"--shape", "tree", bare}),
      AllOf(StartsWith("Drafts are <strong>trees</strong>, <strong>without</strong>"),
            HasSubstr("more than two functions: one that verifies trees (<code>Capabilities::max_leaves</code>).")));
  const std::string ranked = write(
      "r.jsonl", R"({"id":"a","category":"x","turns":[{"prompt":[1,2],"output":[1,2,1],"top_k":[[1],[2,4],[1,2]]}]})"
                 "\n");
  EXPECT_THAT(shape({ranked}), HasSubstr("(top-k rows: <code>--top-k off</code>)"));
  EXPECT_THAT(shape({"--top-k", "on", "--strategy", "hf", ranked}),
              HasSubstr("(top-k rows: this strategy wants none)"));
  EXPECT_THAT(shape({"--top-k", "on", ranked}),
              AllOf(StartsWith("Drafts are <strong>chains</strong>, <strong>with</strong> rankings"),
                    HasSubstr(" of accepted tokens). This needs"),
                    HasSubstr(": one that shows its rankings (<code>top_k(i)</code>).")));
  EXPECT_THAT(shape({"--top-k", "on", "--shape", "tree", ranked}),
              HasSubstr("one that verifies trees (<code>Capabilities::max_leaves</code>) and shows its rankings"));
}

TEST_F(Page, CountsSessionsOnTheAxisOfTheHistogram) {
  const WithPage ran = paged({"--strategy", "none", write("t.jsonl", sessions(30, 3))});
  ASSERT_EQ(ran.status, 0) << ran.error;
  // Without drafts, all sessions have the speedup 1.
  const std::string drawing = between(ran.page, "id=\"histogram\"", "</svg>");
  std::vector<std::string> labels;
  for (std::size_t at = 0; (at = drawing.find("class=\"count\"", at)) != std::string::npos; ++at)
    labels.push_back(between(drawing.substr(at), ">", "<"));
  EXPECT_THAT(labels, ElementsAre("0", "10", "20", "30"));
  EXPECT_THAT(drawing, AllOf(HasSubstr(">sessions</text>"), HasSubstr(">speedup of a session</text>"),
                             HasSubstr("height=\"104.0\"><title>30 sessions</title>")));
}

TEST_F(Page, SaysWhichSessionsReachAPosition) {
  std::ostringstream text;
  const auto add = [&](const std::string& id, const std::string& category, std::size_t tokens) {
    text << R"({"id":")" << id << R"(","category":")" << category << R"(","turns":[{"prompt":[1,2],"output":[5)";
    for (std::size_t i = 0; i < tokens; ++i) text << ",7";
    text << "]}]}\n";
  };
  for (int i = 0; i < 6; ++i) add("s" + std::to_string(i), "short", 16);
  for (int i = 0; i < 3; ++i) add("m" + std::to_string(i), "middle", 32);
  add("l0", "long", 64);
  add("l1", "long", 65);
  const WithPage ran = paged({"--strategy", "none", write("t.jsonl", text.str())});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const auto reach = [&](const std::string& range) { return between(ran.page, ">" + range + "</th>", "</tr>"); };
  EXPECT_THAT(reach("0&nbsp;to&nbsp;15"), HasSubstr(">all 11<"));
  EXPECT_THAT(reach("16&nbsp;to&nbsp;31"), HasSubstr(">5 of 11: <bdi>middle</bdi> 3, <bdi>long</bdi> 2<"));
  EXPECT_THAT(reach("32&nbsp;to&nbsp;63"), HasSubstr(">2 of 11: <bdi>l0</bdi>, <bdi>l1</bdi><"));
  EXPECT_THAT(reach("64&nbsp;to&nbsp;127"), HasSubstr(">1 of 11: <bdi>l1</bdi><"));
}

TEST_F(Page, HasTheAdvice) {
  const std::string trace = write("t.jsonl", sessions(30, 3));
  const WithPage ran = paged({"--cost", "linear:0.02", trace});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const std::string advised = output({"--advise", "--cost", "linear:0.02", trace});
  // The sentences, the table and the code are those of --advise.
  const std::string sentence = between(ran.page, "<p id=\"advised\">", "\n");
  ASSERT_GT(sentence.size(), 20U);
  EXPECT_THAT(advised, HasSubstr(sentence));
  EXPECT_EQ(count(between(ran.page, "aria-label=\"Settings that were tried\"", "</table>"), "<tr role=\"row\">"), 12U);
  EXPECT_THAT(advised, HasSubstr("auto curve = reprise::CostCurve::linear(0.02);\n"));
  EXPECT_THAT(ran.page, HasSubstr("<code>auto curve = reprise::CostCurve::linear(0.02);\n"));
  EXPECT_THAT(ran.page, HasSubstr("A change must gain 0.5%, and 0.05% more for each MiB of memory that it adds."));

  EXPECT_THAT(ran.page, Not(HasSubstr("From every ")));

  const WithPage few = paged({"--cost", "linear:0.02", write("few.jsonl", sessions(3, 1))});
  EXPECT_THAT(few.page, AllOf(HasSubstr("<p id=\"advised\">Too few sessions for an advice: 3 with tokens"),
                              Not(HasSubstr("Settings that were tried"))));
}

TEST_F(Page, TakesTheAdviceFromAPartOfManyTokens) {
  std::string output = "1";
  for (int i = 0; i < 10'000; ++i) output += ",1";
  std::string text;
  for (int i = 0; i < 24; ++i)
    text +=
        R"({"id":")" + std::to_string(i) + R"(","category":"c","turns":[{"prompt":[1],"output":[)" + output + "]}]}\n";
  const WithPage ran = paged({"--cost", "linear:0.02", "--strategy", "none", write("t.jsonl", text)});
  ASSERT_EQ(ran.status, 0) << ran.error;
  EXPECT_THAT(ran.page, HasSubstr("From every 3rd session: 8 sessions, 80,000 tokens."));
}

TEST_F(Page, EscapesHostileNames) {
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                            "<img src=x onerror=alert(2)>",
                                            "\" onmouseover=\"alert(3)",
                                            "' autofocus onfocus='alert(4)",
                                            "{{script}}",
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
  // The markup of the page itself: two scripts, no image, no handler. In the data, quotes are harmless.
  const std::size_t data = ran.page.find("id=\"data\">");
  const std::string markup = ran.page.substr(0, data) + ran.page.substr(ran.page.find("</script>", data));
  EXPECT_EQ(count(ran.page, "<script"), 2U);
  EXPECT_EQ(count(ran.page, "</script>"), 2U);
  EXPECT_EQ(count(ran.page, "<img"), 0U);
  EXPECT_EQ(count(ran.page, "<!--"), 0U);
  EXPECT_EQ(count(ran.page, "<b>"), 0U);
  EXPECT_EQ(count(markup, "\" onmouseover=\"alert"), 0U);
  EXPECT_EQ(count(markup, "' autofocus"), 0U);
  EXPECT_EQ(count(ran.page, "\xe2\x80\xa8"), 0U);
  EXPECT_EQ(count(ran.page, "\"use strict\""), 1U) << "a name was taken for a placeholder";
  EXPECT_THAT(ran.page, HasSubstr("&lt;img src=x onerror=alert(2)&gt;"));
  const tools::Json::Array& shown = *ran.data.find("sessions")->array();
  ASSERT_EQ(shown.size(), hostile.size());
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
  EXPECT_FALSE(*ran.data.find("sessions")->array()->front().find("complete")->boolean());
}

TEST_F(Page, IsRefusedBeforeTheReplay) {
  const std::string trace = write("t.jsonl", sessions(2, 1));
  const std::string nowhere = (folder_ / "none" / "r.html").generic_string();
  refuses({"--report", nowhere, trace}, "--report " + nowhere + ": cannot be written");
  refuses({"--report", folder_.generic_string(), trace}, "cannot be written");
  refuses({"--report", trace, trace}, "the trace");
  refuses({"--report", report_, "--output", report_, trace}, "are the same file");
  refuses({"--report", report_, "--report-session", "zzz", trace}, "no session of the traces");
  refuses({"--report-session", "s0", trace}, "needs --report");
  refuses({"--vocabulary", trace, trace}, "needs --report");
  refuses({"--report", report_, "--vocabulary", nowhere, trace}, "cannot be opened");
  refuses({"--report", report_, "--seeds", "2", "--cost-known", "learned", trace}, "--report");
  EXPECT_FALSE(fs::exists(report_));
  EXPECT_EQ(read(trace), sessions(2, 1));
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

TEST_F(Page, SaysWhatControlHasLearned) {
  const std::string trace = write("t.jsonl", sessions(20, 2));
  EXPECT_THAT(paged({"--cost", "linear:0.1", trace}).page, HasSubstr("was told the cost curve"));
  EXPECT_THAT(paged({"--cost", "linear:0.1", "--control", "all", trace}).page, HasSubstr("does not use costs"));
  EXPECT_THAT(paged({"--cost", "linear:0.1", "--cost-known", "assumed", trace}).page,
              HasSubstr("received no pass times"));
  EXPECT_THAT(paged({"--cost", "linear:0.1", "--cost-known", "carried", trace}).page,
              HasSubstr("Learned and true cost by rows, after "));
}

TEST_F(Page, WorksForEmptySessions) {
  const WithPage ran = paged({write("t.jsonl", R"({"id":"a","category":"","turns":[{"prompt":[1],"output":[2]}]})"
                                               "\n")});
  ASSERT_EQ(ran.status, 0) << ran.error;
  EXPECT_THAT(ran.page,
              AllOf(HasSubstr("it needs at least two sessions"), Not(HasSubstr("nan")), Not(HasSubstr("inf\""))));
}

TEST(PageHtml, EscapesText) {
  EXPECT_EQ(html("<a href=\"x\">'&\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\\n");
  EXPECT_EQ(html_name(std::string(200, 'x')), "<bdi>" + std::string(80, 'x') + "...</bdi>");
  EXPECT_EQ(html_name(std::string(79, 'x') + "\xc3\xa9y"), "<bdi>" + std::string(79, 'x') + "...</bdi>");
}

}  // namespace
}  // namespace reprise::replay::replay_page_test
