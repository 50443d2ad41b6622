// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "house/headers.hpp"

/// \file The sentences of comments and of Markdown, for the test that holds them short and plain.
namespace house {

/// A sentence, or a heading or a list item without a full stop.
struct Sentence {
  std::string text;
  std::size_t line = 0;  ///< of its first word, from 1
  std::size_t words = 0;
};

/// Text that belongs together: a paragraph, a list item, the comment of a declaration.
class Paragraphs {
 public:
  /// Adds a line to the paragraph that is open.
  void add(std::string_view text, std::size_t line) {
    for (const char c : text) {
      text_ += c;
      lines_.push_back(line);
    }
    text_ += ' ';
    lines_.push_back(line);
  }
  /// Closes the paragraph, and cuts its text into sentences.
  void end();
  std::vector<Sentence> take() {
    end();
    return std::move(found_);
  }

 private:
  std::string text_;
  std::vector<std::size_t> lines_;  // of each character
  std::vector<Sentence> found_;
};

inline bool is_blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

/// Code in backticks and the targets of links are no prose: `a b` becomes `_`, and [text](target) becomes text. The
/// length stays, so that places in the text keep their lines.
inline std::string prose(std::string text) {
  const auto blank = [&](std::size_t begin, std::size_t end, char with) {
    for (std::size_t i = begin; i < end; ++i) text[i] = with;
  };
  for (std::size_t begin = text.find('`'); begin != std::string::npos; begin = text.find('`', begin)) {
    const std::size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    blank(begin, end + 1, '_');
    begin = end;
  }
  for (std::size_t begin = text.find("]("); begin != std::string::npos; begin = text.find("](", begin)) {
    const std::size_t end = text.find(')', begin);
    if (end == std::string::npos) break;
    blank(begin, end + 1, '*');
  }
  return text;
}

/// The words of prose: runs between blanks that hold a letter, a digit or code.
inline std::size_t count_words(std::string_view text) {
  std::size_t words = 0;
  bool inside = false;
  bool counted = false;
  for (const char c : text) {
    inside = c != ' ';
    if (!inside) counted = false;
    if (inside && !counted && in_word(c)) ++words, counted = true;
  }
  return words;
}

/// How often `word` (in small letters) stands in the text as a word of its own.
inline std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t i = 0; i + word.size() <= text.size(); ++i) {
    if (i > 0 && in_word(text[i - 1])) continue;
    if (i + word.size() < text.size() && in_word(text[i + word.size()])) continue;
    found += std::equal(word.begin(), word.end(), text.begin() + static_cast<std::ptrdiff_t>(i), [](char a, char b) {
      return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
    });
  }
  return found;
}

/// Whether the full stop at `at` belongs to an abbreviation.
inline bool abbreviates(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 8> known = {"e.g", "i.e", "et al", "vs", "cf", "etc", "approx", "No"};
  const std::string_view before = text.substr(0, at);
  return std::any_of(known.begin(), known.end(), [&](std::string_view word) { return before.ends_with(word); });
}

/// The place after the sentence that begins at `begin`.
inline std::size_t sentence_end(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] != '.' && text[i] != '?' && text[i] != '!') continue;
    std::size_t after = i + 1;
    while (after < text.size() && (text[after] == ')' || text[after] == '"' || text[after] == '*')) ++after;
    if (after < text.size() && text[after] != ' ') continue;
    if (text[i] == '.' && after < text.size() && abbreviates(text, i)) continue;
    return after;
  }
  return text.size();
}

inline void Paragraphs::end() {
  const std::string plain = prose(text_);
  for (std::size_t begin = plain.find_first_not_of(' '); begin != std::string::npos;) {
    const std::size_t end = sentence_end(plain, begin);
    const std::string_view sentence = stripped(std::string_view(plain).substr(begin, end - begin));
    if (const std::size_t words = count_words(sentence); words > 0)
      found_.push_back({std::string(sentence), lines_[begin], words});
    begin = plain.find_first_not_of(' ', end);
  }
  text_.clear();
  lines_.clear();
}

/// Whether a line begins a list item or a labelled point: "* ", "- ", "1. ".
inline bool begins_item(std::string_view text) {
  if (text.starts_with("* ") || text.starts_with("- ") || text.starts_with("> ")) return true;
  const std::size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text.substr(digits).starts_with(". ");
}

/// Where the comment of a line of code begins; npos: there is none. Strings are passed over.
inline std::size_t comment_begin(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == quote)
        quote = 0;
    } else if (line[i] == '"' || (line[i] == '\'' && (i == 0 || !in_word(line[i - 1])))) {
      quote = line[i];
    } else if (line[i] == '/' && line[i + 1] == '/') {
      return i;
    }
  }
  return std::string_view::npos;
}

inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The sentences of the comments of a C++ file. A comment beside code goes on in the lines below it that hold nothing
/// else and do not begin further left.
inline std::vector<Sentence> comment_sentences(std::string_view code) {
  Paragraphs paragraphs;
  std::size_t column = 0;  // of the comment beside code that may go on
  bool fenced = false;
  const std::vector<std::string_view> lines = lines_of(code);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t begin = comment_begin(lines[i]);
    if (begin == std::string_view::npos) {
      paragraphs.end();
      column = 0;
      continue;
    }
    const bool beside = !is_blank(lines[i].substr(0, begin));
    if (beside || (column > 0 && begin < column)) paragraphs.end();
    column = beside ? begin : column > 0 && begin >= column ? column : 0;
    std::string_view text = lines[i].substr(begin);
    text = text.substr(std::min(text.find_first_not_of('/'), text.size()));
    if (text.starts_with("<")) text.remove_prefix(1);
    text = stripped(text);
    if (text.starts_with("```")) fenced = !fenced;
    if (text.starts_with("SPDX") || text.starts_with("NOLINT") || text.starts_with("clang-format") ||
        text.starts_with("```") || fenced || text.empty()) {
      paragraphs.end();
      continue;
    }
    if (text.starts_with("\\file")) text.remove_prefix(5);
    if (begins_item(text)) paragraphs.end();
    paragraphs.add(text, i + 1);
  }
  return paragraphs.take();
}

/// A Markdown page: its sentences, and the lines that do not hold exactly one.
struct Page {
  std::vector<Sentence> sentences;
  std::vector<std::size_t> broken_lines;  ///< two sentences in a line, or a sentence in two lines
};

/// Fenced code and tables are left out. A heading is a sentence.
inline Page page_of(std::string_view text) {
  Page page;
  Paragraphs paragraphs;
  bool fenced = false;
  bool open = false;  // the line before ends within a sentence
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = stripped(lines[i]);
    const bool fence = line.starts_with("```");
    if (fence) fenced = !fenced;
    if (fence || fenced || line.empty() || line.starts_with("|") || line.starts_with("<") || line.starts_with("#")) {
      paragraphs.end();
      open = false;
      if (line.starts_with("#") && !fenced) paragraphs.add(line, i + 1), paragraphs.end();
      continue;
    }
    if (begins_item(line)) {
      paragraphs.end();
      open = false;
      line = stripped(line.substr(line.find(' ')));
    }
    const std::string plain = prose(std::string(line));
    const std::size_t end = sentence_end(plain, 0);
    if (open || !is_blank(std::string_view(plain).substr(end))) page.broken_lines.push_back(i + 1);
    const char last = stripped(plain).back();
    open = end == plain.size() && last != '.' && last != '?' && last != '!' && last != ':' && last != ')' &&
           last != '"' && last != '*';
    paragraphs.add(line, i + 1);
    if (!open) paragraphs.end();
  }
  page.sentences = paragraphs.take();
  return page;
}

/// Counts over many sentences, for the rules.
struct Language {
  std::size_t words = 0;
  std::size_t sentences = 0;
  std::size_t above_25 = 0;  ///< sentences of more than 25 words
  std::size_t above_40 = 0;
  std::size_t whats = 0;    ///< the word `what`, except in questions
  std::size_t behinds = 0;  ///< the word `behind`, where "after" is meant

  void count(const Sentence& sentence) {
    words += sentence.words;
    ++sentences;
    above_25 += sentence.words > 25;
    above_40 += sentence.words > 40;
    whats += sentence.text.back() == '?' ? 0 : count_of(sentence.text, "what");
    behinds += count_of(sentence.text, "behind");
  }
};

}  // namespace house
