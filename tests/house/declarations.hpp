// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "house/headers.hpp"

/// \file The declarations of a header, read from its text: enough C++ for the headers of this library.
namespace house {

/// C++ without comments, literals and preprocessor lines.
inline std::string bare(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (text.substr(i, 2) == "//" || (text[i] == '#' && line_start)) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
      out += '\n';
    } else if (text[i] == '"' ||
               (text[i] == '\'' && (out.empty() || std::isalnum(static_cast<unsigned char>(out.back())) == 0))) {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote; ++i) i += text[i] == '\\' ? 1 : 0;
      out += "0";
    } else {
      out += text[i];
    }
  }
  return out;
}

inline bool begins_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !in_word(text[word.size()]));
}
/// The words of a text, in order: letters, digits and underscores, not beginning with a digit.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > i && std::isdigit(static_cast<unsigned char>(text[i])) == 0) found.emplace_back(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return found;
}
/// The end of the brackets that open at `open`: the character after the closing one.
inline std::size_t after_brackets(std::string_view text, std::size_t open) {
  const char opening = text[open];
  const char closing = opening == '<' ? '>' : opening == '(' ? ')' : opening == '[' ? ']' : '}';
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == opening ? 1 : text[i] == closing ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return text.size();
}
/// Without a leading "template <...>".
inline std::string_view without_head(std::string_view text) {
  for (text = left_trimmed(text); begins_with_word(text, "template"); text = left_trimmed(text)) {
    const std::size_t open = text.find('<');
    text.remove_prefix(open == std::string_view::npos ? text.size() : after_brackets(text, open));
  }
  return text;
}
/// Without "requires ..." and attributes at its beginning.
inline std::string_view without_clauses(std::string_view text) {
  for (text = without_head(text);; text = without_head(text)) {
    if (text.starts_with("[[")) {
      text.remove_prefix(after_brackets(text, 0));
    } else if (begins_with_word(text, "requires")) {
      text.remove_prefix(std::string_view("requires").size());
      for (bool more = true; more;) {
        text = left_trimmed(text);
        std::size_t end = 0;
        if (text.starts_with('(')) {
          end = after_brackets(text, 0);
        } else {
          while (end < text.size() && (in_word(text[end]) || text[end] == ':')) ++end;
          if (end < text.size() && text[end] == '<') end = after_brackets(text, end);
        }
        text = left_trimmed(text.substr(end));
        more = text.starts_with("&&") || text.starts_with("||");
        if (more) text.remove_prefix(2);
      }
    } else {
      return text;
    }
  }
}

/// The name that a statement at namespace scope declares; empty where it declares none. Operators have none here.
inline std::string declared_name(std::string_view statement) {
  std::string_view text = without_clauses(statement);
  for (const char* word : {"static_assert", "friend", "extern"})
    if (begins_with_word(text, word)) return {};
  const auto word_at = [&](std::size_t i) {
    const std::vector<std::string> words = words_of(text);
    return i < words.size() ? words[i] : std::string();
  };
  if (begins_with_word(text, "using"))
    return text.find('=') == std::string_view::npos || word_at(1) == "namespace" ? std::string() : word_at(1);
  if (begins_with_word(text, "concept")) return word_at(1);
  if (begins_with_word(text, "enum")) return word_at(1) == "class" ? word_at(2) : word_at(1);
  for (const std::string_view word : {"class", "struct"})
    if (begins_with_word(text, word)) {
      text = without_clauses(text.substr(word.size()));
      return word_at(0);
    }
  // A function up to its parameters, a variable up to its value.
  std::size_t end = 0;
  while (end < text.size() && text[end] != '(' && text[end] != '=')
    end = text[end] == '<' || text.substr(end, 2) == "[[" ? after_brackets(text, end) : end + 1;
  text = stripped(text.substr(0, end));
  if (text.find("operator") != std::string_view::npos) return {};
  while (!text.empty() && (text.back() == '>' || text.back() == ']')) {  // a specialisation, an array
    const std::size_t open = text.find(text.back() == '>' ? '<' : '[');
    text = stripped(text.substr(0, std::min(open, text.size() - 1)));
  }
  const std::vector<std::string> words = words_of(text);
  return words.empty() ? std::string() : words.back();
}

/// True for a function that is defined outside of its class: its name has the class in front.
inline bool is_member_definition(std::string_view statement) {
  std::string_view name = statement.substr(0, statement.find('('));
  if (name.size() == statement.size() || name.find('=') != std::string_view::npos) return false;
  while (!name.empty() && (in_word(name.back()) || name.back() == '~')) name.remove_suffix(1);
  return name.ends_with("::");
}

/// The names that a header declares for users at namespace scope, as written inside of `reprise` or
/// `reprise::testing`: Session, presets::vllm, archetype::Engine. Without those of namespaces named detail, and
/// without operators.
inline Names declared_names(const std::string& header) {
  const std::string text = bare(header);
  Names found;
  std::vector<std::string> scopes;  // one for each open namespace
  std::string statement;
  const auto keep = [&] {
    std::string scope;
    for (const std::string& part : scopes) scope += part;
    const std::string name = is_member_definition(statement) ? std::string() : declared_name(statement);
    if (!name.empty() && scope.find("detail::") == std::string::npos) found.insert(scope + name);
    statement.clear();
  };
  int round = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    round += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (round != 0 || (c != ';' && c != '{' && c != '}')) {
      statement += c;
    } else if (c == ';') {
      keep();
    } else if (c == '}') {
      if (!scopes.empty()) scopes.pop_back();
      statement.clear();
    } else if (const std::vector<std::string> words = words_of(statement);
               std::find(words.begin(), words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)), "namespace") !=
               words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words))) {
      std::string scope;
      for (const std::string& word : words)
        if (word != "namespace" && word != "inline" && word != "reprise" && word != "v0" && word != "testing")
          scope += word + "::";
      scopes.push_back(scope);
      statement.clear();
    } else {
      const std::string_view declared = without_clauses(statement);
      const bool function = declared.find('(') != std::string_view::npos &&
                            declared.find('(') < std::min(declared.find('='), declared.size()) &&
                            !begins_with_word(declared, "class") && !begins_with_word(declared, "struct");
      at = after_brackets(text, at) - 1;
      if (function) keep();  // the rest of other declarations ends with a semicolon
    }
  }
  return found;
}

inline std::string_view without_noexcept(std::string_view text) {
  text = left_trimmed(text);
  if (begins_with_word(text, "noexcept")) text.remove_prefix(std::string_view("noexcept").size());
  return left_trimmed(text);
}
/// Walks over a header and keeps the declarations that a user sees: outside of
/// namespaces named detail, of private and protected parts, and of function
/// bodies; initialisers left out.
class PublicDeclarations {
 public:
  explicit PublicDeclarations(const std::string& header) : text_(bare(header)) { scope(false, false); }
  [[nodiscard]] const std::vector<std::string>& found() const { return found_; }

 private:
  void scope(bool hidden, bool in_class) {
    std::string statement;
    int round = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      round += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == '}' && round == 0) break;
      if (c == ':' && in_class && round == 0 && text_.compare(at_, 2, "::") != 0 &&
          (at_ == 0 || text_[at_ - 1] != ':')) {
        const std::string_view label = left_trimmed(statement);
        if (label == "public" || label == "private" || label == "protected") {
          hidden = label != "public";
          statement.clear();
          continue;
        }
      }
      if (c == ';' && round == 0) {
        keep(statement, hidden);
        statement.clear();
      } else if (c == '{' && round == 0) {
        enter(statement, hidden);
      } else {
        statement += c;
      }
    }
  }
  /// A block after `statement`: a namespace or class is walked over, anything
  /// else skipped.
  void enter(std::string& statement, bool hidden) {
    const std::string_view declared = without_head(statement);
    const bool name_space = begins_with_word(declared, "namespace");
    const bool type = begins_with_word(declared, "class") || begins_with_word(declared, "struct");
    const bool list = begins_with_word(declared, "enum") || begins_with_word(declared, "union");
    const bool body = !name_space && !type && !list;
    if (!name_space) keep(statement, hidden);
    ++at_;
    if (name_space || type) {
      const bool inside = hidden || (name_space && declared.find("detail") != std::string_view::npos) ||
                          begins_with_word(declared, "class");
      const bool begins_hidden = type && begins_with_word(declared, "class");
      scope(name_space ? inside : hidden || begins_hidden, type && !hidden);
    } else {
      skip_block();
    }
    if (name_space || body) statement.clear();
    if (type || list) statement.clear();
  }
  void skip_block() {
    for (int depth = 1; at_ < text_.size(); ++at_) {
      depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      if (depth == 0) return;
    }
  }
  void keep(const std::string& statement, bool hidden) {
    std::string_view declared = without_head(statement);
    // An alias is how a public name hides parameters that exist for tests; a concept is asked as a whole.
    for (const char* word : {"static_assert", "friend", "using", "concept"})
      if (begins_with_word(declared, word)) return;
    if (hidden) return;
    const std::string_view head = std::string_view(statement).substr(0, statement.size() - declared.size());
    if (const std::size_t initialiser = declared.find(" = "); initialiser != std::string_view::npos)
      declared = declared.substr(0, initialiser);
    // A constructor's list of members is part of its body.
    for (std::size_t close = declared.find(')'); close != std::string_view::npos; close = declared.find(')', close + 1))
      if (without_noexcept(declared.substr(close + 1)).starts_with(':')) declared = declared.substr(0, close + 1);
    found_.push_back(std::string(head) + std::string(declared));
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

}  // namespace house
