// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::traces {
namespace {

/// SplitMix64: the distributions of <random> differ from library to library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t bound) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return static_cast<std::size_t>((x ^ (x >> 31)) % bound);
  }
  bool percent(std::size_t p) { return below(100) < p; }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::uint64_t state_;
};

using Words = std::vector<std::string>;

/// A text that is put together from left to right. `a + b` may draw b before a, and compilers differ; `t << a << b`
/// may not.
class Text {
 public:
  Text& operator<<(std::string_view part) {
    text_ += part;
    return *this;
  }
  Text& operator<<(std::size_t number) { return *this << std::string_view(std::to_string(number)); }
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  std::string text_;
};

/// 0 and 1 are not used, 2 ends an output, words count from 3 in the order in which they first occur.
constexpr int end_of_output = 2;

/// A word is a run of letters and digits with the blanks before it; anything else is a token of its own.
class Tokenizer {
 public:
  std::vector<int> encode(std::string_view text) {
    std::vector<int> ids;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && text[end] == ' ') ++end;
      const std::size_t word = end;
      while (end < text.size() && is_letter(text[end])) ++end;
      if (end == word && end == at) ++end;
      ids.push_back(
          ids_.emplace(std::string(text.substr(at, end - at)), static_cast<int>(ids_.size()) + 3).first->second);
      at = end;
    }
    return ids;
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
  std::map<std::string, int, std::less<>> ids_;
};

/// Collects the lines of one file.
class Writer {
 public:
  Writer(std::string name, std::string category) : name_(std::move(name)), category_(std::move(category)) {}

  void session() {
    if (sessions_ != 0) text_ += "]}\n";
    text_ += "{\"id\":\"synthetic/" + name_ + "/" + std::to_string(sessions_++) + "\",\"category\":\"" + category_ +
             "\",\"turns\":[";
    turns_ = 0;
  }
  void turn(std::string_view prompt, std::string_view output) {
    text_ += turns_++ == 0 ? "{\"prompt\":[" : ",{\"prompt\":[";
    append(tokenizer_.encode(prompt));
    text_ += "],\"output\":[";
    std::vector<int> ids = tokenizer_.encode(output);
    ids.push_back(end_of_output);
    append(ids);
    text_ += "]}";
  }
  File file() { return {name_ + ".jsonl", text_ + "]}\n"}; }

 private:
  void append(const std::vector<int>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) text_ += (i == 0 ? "" : ",") + std::to_string(ids[i]);
  }

  std::string name_;
  std::string category_;
  Tokenizer tokenizer_;
  std::string text_;
  std::size_t sessions_ = 0;
  std::size_t turns_ = 0;
};

/// Made-up words: consonant and vowel, two to four times.
Words invent(Random& random, std::size_t count) {
  Words words;
  while (words.size() < count) {
    std::string word;
    for (std::size_t i = random.below(3) + 2; i > 0; --i) {
      word += "bdfgklmnprstvz"[random.below(14)];
      word += "aeiou"[random.below(5)];
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

/// Text without a source: each word depends on the one before it, as in a Markov chain of order one. Every word
/// allows four successors, of which the first is the likeliest; which ones is fixed by a hash of the word.
class Prose {
 public:
  Prose(Random& random, std::size_t vocabulary) : words_(invent(random, vocabulary)) {}

  std::string sentence(Random& random) {
    Text text;
    for (std::size_t i = 0, size = random.below(9) + 6; i < size; ++i) {
      const std::size_t draw = random.below(10);
      const std::size_t choice = draw < 4 ? 0 : draw < 7 ? 1 : draw < 9 ? 2 : 3;
      Random successors(last_ * 7919 + choice * 15485863);
      // The square of a uniform number: few words are common, most are rare.
      const std::size_t drawn = successors.below(words_.size());
      last_ = drawn * drawn / words_.size();
      text << (i == 0 ? "" : " ") << words_[last_];
    }
    return text.str() + ".";
  }
  std::string paragraph(Random& random, std::size_t sentences) {
    std::string text = sentence(random);
    for (std::size_t i = 1; i < sentences; ++i) text += " " + sentence(random);
    return text;
  }
  const std::string& word(Random& random) { return random.one_of(words_); }

 private:
  Words words_;
  std::size_t last_ = 0;
};

// --- chat: nothing to copy but the habits of the text ---

File chat() {
  Random random(1);
  Prose prose(random, 900);
  Writer writer("chat", "chat");
  for (int s = 0; s < 24; ++s) {
    writer.session();
    for (std::size_t t = random.below(3) + 1; t > 0; --t) {
      Text prompt;
      prompt << "User: tell me about " << prose.word(random) << " and " << prose.word(random) << ". "
             << prose.sentence(random) << "\nAssistant:";
      writer.turn(prompt.str(), " " + prose.paragraph(random, random.below(12) + 8));
    }
  }
  return writer.file();
}

// --- retrieval: questions about a document, answered with quotes from it ---

File retrieval() {
  Random random(2);
  Prose prose(random, 1200);
  Writer writer("retrieval", "retrieval");
  for (int s = 0; s < 16; ++s) {
    writer.session();
    Words document;
    for (int i = 0; i < 40; ++i) document.push_back(prose.sentence(random));
    Text prompt;
    prompt << "Document:\n";
    for (const std::string& sentence : document) prompt << sentence << " ";
    for (std::size_t t = random.below(2) + 1; t > 0; --t) {
      prompt << "\nQuestion: what about " << prose.word(random) << " " << prose.word(random) << "?\nAnswer:";
      Text answer;
      for (std::size_t quotes = random.below(3) + 2; quotes > 0; --quotes) {
        const std::size_t at = random.below(document.size() - 2);
        answer << " " << prose.sentence(random) << " The document says: \"" << document[at];
        if (random.percent(50)) answer << " " << document[at + 1];
        answer << "\"";
      }
      answer << " " << prose.sentence(random);
      writer.turn(prompt.str(), answer.str());
      prompt = {};
    }
  }
  return writer.file();
}

// --- tool calls: an agent that fills in templates from what tools answered ---

File tool_calls() {
  Random random(3);
  const Words names = invent(random, 60);
  const Words tools = {"find_customer", "list_orders", "get_order", "cancel_order", "refund_order", "send_message"};
  const Words states = {"open", "paid", "shipped", "returned"};
  Writer writer("tool-calls", "tool_calling");
  for (int s = 0; s < 12; ++s) {
    writer.session();
    Text customer;
    customer << random.one_of(names) << random.below(9000) + 1000;
    Text prompt;
    prompt << "System: you may call these tools.\n";
    for (const std::string& tool : tools)
      prompt << "{\"name\": \"" << tool
             << "\", \"parameters\": {\"customer_id\": \"string\", \"order_id\": \"string\"}}\n";
    prompt << "User: I am " << customer.str() << ", please look at my " << random.one_of(names) << ".\nAssistant:";
    for (std::size_t t = random.below(4) + 3; t > 0; --t) {
      Text order;
      order << "W" << random.below(900000) + 100000;
      Text call;
      call << " {\"name\": \"" << random.one_of(tools) << "\", \"arguments\": {\"customer_id\": \"" << customer.str()
           << "\", \"order_id\": \"" << order.str() << "\"}}";
      writer.turn(prompt.str(), call.str());

      Text listed;
      Text reply;
      listed << "\nTool: ";
      reply << " I found order " << order.str() << " for you:\n";
      for (std::size_t i = random.below(4) + 1; i > 0; --i) {
        const std::string& item = random.one_of(names);
        const std::string& state = random.one_of(states);
        listed << "{\"order_id\": \"" << order.str() << "\", \"item\": \"" << item
               << "\", \"price\": " << random.below(200) << ", \"state\": \"" << state << "\"}\n";
        reply << "- the " << item << " is " << state << "\n";
      }
      listed << "Assistant:";
      reply << "Would you like me to change the " << random.one_of(names) << "?";
      writer.turn(listed.str(), reply.str());

      prompt = {};
      prompt << "\nUser: yes, " << random.one_of(names) << " and " << random.one_of(names) << " please.\nAssistant:";
    }
  }
  return writer.file();
}

// --- code edit: a source file comes back with changes ---

/// One function: a few statements over a handful of names.
std::string function(Random& random, const Words& names) {
  const std::string& name = random.one_of(names);
  const std::string& a = random.one_of(names);
  const std::string& b = random.one_of(names);
  Text text;
  text << "def " << name << "(" << a << ", " << b << "):\n";
  for (std::size_t lines = random.below(6) + 3; lines > 0; --lines) {
    const std::string& c = random.one_of(names);
    switch (random.below(5)) {
      case 0:
        text << "    " << c << " = " << a << "[" << random.below(20) << "]\n";
        break;
      case 1:
        text << "    if " << b << " is None:\n        return " << c << "\n";
        break;
      case 2:
        text << "    for item in " << a << ":\n        " << c << ".append(item." << b << ")\n";
        break;
      case 3:
        text << "    " << c << " = " << random.one_of(names) << "(" << a << ", " << b << ")\n";
        break;
      default:
        text << "    log.debug(\"" << c << "\", " << b << ")\n";
    }
  }
  text << "    return " << b << "\n\n";
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

File code_edit() {
  Random random(4);
  const Words all = invent(random, 400);
  Writer writer("code-edit", "code_editing");
  for (int s = 0; s < 8; ++s) {
    writer.session();
    Words names;
    for (int i = 0; i < 14; ++i) names.push_back(random.one_of(all));
    Words functions;
    for (std::size_t i = random.below(5) + 6; i > 0; --i) functions.push_back(function(random, names));
    Text file;
    for (const std::string& text : functions) file << text;

    // The whole file again, with a name changed and a line added here and there.
    const std::string& from = random.one_of(names);
    const std::string to = random.one_of(all) + "new";
    Text edited;
    for (std::string& text : functions) {
      text = replaced(text, from, to);
      if (random.percent(30)) text.insert(text.find('\n') + 1, "    check(" + random.one_of(all) + ")\n");
      edited << text;
    }
    writer.turn("Here is a file:\n" + file.str() + "Rename " + from + " to " + to + " and add checks.\n",
                "Here is the new file:\n" + edited.str());

    // Then one function, as a block to search for and its replacement.
    const std::string& before = random.one_of(functions);
    const std::string after = replaced(before, "log.debug", "log.info") + function(random, names);
    writer.turn("Now log less in one function, and add another behind it.\n",
                "<<<<<<< SEARCH\n" + before + "=======\n" + after + ">>>>>>> REPLACE\n");
  }
  return writer.file();
}

}  // namespace

std::vector<File> synthetic_traces() { return {chat(), code_edit(), retrieval(), tool_calls()}; }

}  // namespace reprise::traces
