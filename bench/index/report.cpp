// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "corpus_input.hpp"
#include "documents.hpp"
#include "exclusions.hpp"
#include "reprise/core/token.hpp"
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/verify_corpus.hpp"

namespace reprise::indexing {
namespace {

using tools::decimal;
using tools::grouped;
using tools::InputError;
using tools::JsonWriter;
using tools::printable;

/// Lines of a name and a number.
class Lines {
 public:
  explicit Lines(std::ostream& out) : out_(out) {}
  void line(const std::string& name, const std::string& value, const std::string& note = {}) {
    out_ << tools::left(name, 14) << tools::right(value, 20) << (note.empty() ? "" : "  ") << note << "\n";
  }
  void line(const std::string& name, std::uint64_t value, const std::string& note = {}) {
    line(name, grouped(value), note);
  }

 private:
  std::ostream& out_;
};

double per(double sum, std::uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }

JsonWriter& begin_json(JsonWriter& json, const std::string& corpus) {
  return json.begin_object().member("version", version_string).member("corpus", corpus);
}

CorpusStore store_of(const CorpusInput& corpus) {
  auto store = CorpusStore::open(corpus.bytes());
  if (!store) throw InputError(corpus.path() + ": " + std::string(store.error().message));
  return *store;
}

void write_names(std::ostream& out, const CorpusInput& corpus, bool as_json) {
  const CorpusStore store = store_of(corpus);
  JsonWriter json(out);
  if (as_json) begin_json(json, corpus.path()).key("documents").begin_array();
  for (std::uint64_t i = 0; i < store.documents(); ++i) {
    const CorpusStore::DocumentRange document = store.document(i);
    const std::string id = hex(document_id(document.name));
    const std::uint64_t tokens = document.end - document.begin;
    if (as_json)
      json.new_line(1).begin_object().member("id", id).member("tokens", tokens).member("name", document.name).end();
    else
      out << id << tools::right(std::to_string(tokens), 14) << "  " << printable(document.name) << "\n";
  }
  if (as_json) json.end().end(), out << "\n";
}

/// The sections, with their places in the file.
void write_sections(JsonWriter& json, const CorpusHeader& header) {
  const auto layout = layout_of(header);
  json.key("sections").begin_array();
  for (std::size_t i = 0; i < reprise::detail::corpus_sections; ++i)
    json.begin_object()
        .member("name", name_of(static_cast<CorpusSection>(i)))
        .member("offset", layout.parts[i].offset)
        .member("bytes", layout.parts[i].bytes)
        .end();
  json.end();
}

/// The context of a query, which ends with the tokens that are looked up.
std::vector<Token> context_of(const Options& options, std::uint32_t vocabulary) {
  std::vector<Token> context;
  for (const std::uint32_t id : parse_tokens(options.tokens)) {
    if (id >= vocabulary)
      throw InputError("--tokens: the id " + std::to_string(id) + " is outside the corpus's vocabulary of " +
                       std::to_string(vocabulary) + " ids; give ids of the tokenizer that it was built with");
    context.push_back(static_cast<Token>(id));
  }
  return context;
}

struct Answer {
  TokenSpan matched;
  CorpusStore::Continuations found;
  std::vector<CorpusStore::NextToken> next;
};

/// The next tokens after the longest end of `context` that occurs.
Answer answer_of(const CorpusStore& store, TokenSpan context, std::size_t depth, std::size_t limit) {
  std::size_t length = std::min({context.size(), depth, CorpusStore::most_context});
  while (length > 0 && store.count(context.last(length)) == 0) --length;
  Answer answer{context.last(length), {}, std::vector<CorpusStore::NextToken>(limit)};
  answer.found = store.continuations(answer.matched, answer.next);
  answer.next.resize(answer.found.size);
  return answer;
}

}  // namespace

void write_built(std::ostream& out, const Built& built, bool as_json) {
  const double seconds = built.read_seconds + built.sort_seconds;
  if (as_json) {
    JsonWriter json(out);
    begin_json(json, built.path)
        .member("vocabulary", built.vocabulary)
        .member("documents", built.documents)
        .member("empty", built.empty)
        .member("excluded", built.excluded)
        .member("tokens", built.tokens)
        .member("bytes", built.bytes)
        .member("ranges", built.ranges)
        .raw_member("read_seconds", decimal(built.read_seconds, 3))
        .raw_member("sort_seconds", decimal(built.sort_seconds, 3))
        .end();
    out << "\n";
    return;
  }
  Lines lines(out);
  lines.line("vocabulary", built.vocabulary, built.vocabulary_given ? "" : "the largest id decides");
  lines.line("documents", built.documents);
  if (built.excluded != 0) lines.line("excluded", built.excluded, "documents");
  if (built.empty != 0) lines.line("empty", built.empty, "documents without tokens, left out");
  lines.line("tokens", built.tokens);
  lines.line("bytes", built.bytes, decimal(per(static_cast<double>(built.bytes), built.tokens), 2) + " per token");
  lines.line("seconds", decimal(seconds, 1), decimal(built.sort_seconds, 1) + " of them for the index");
}

void write_info(std::ostream& out, const Options& options) {
  const CorpusInput corpus(options.inputs[0]);
  if (options.names) return write_names(out, corpus, options.json);
  const CorpusHeader& header = corpus.header();
  const std::uint64_t bytes = corpus.bytes().size();
  if (options.json) {
    JsonWriter json(out);
    begin_json(json, corpus.path())
        .member("documents", header.documents)
        .member("tokens", header.tokens())
        .member("bytes", bytes)
        .member("vocabulary", header.vocabulary)
        .member("fingerprint", hex(header.fingerprint))
        .member("depth", header.depth)
        .member("token_bytes", header.token_bytes)
        .member("place_bytes", header.place_bytes);
    write_sections(json, header);
    json.end();
    out << "\n";
    return;
  }
  Lines lines(out);
  lines.line("documents", header.documents);
  lines.line("tokens", header.tokens());
  lines.line("bytes", bytes, decimal(per(static_cast<double>(bytes), header.tokens()), 2) + " per token");
  lines.line("vocabulary", header.vocabulary, std::to_string(header.token_bytes) + " bytes a token");
  lines.line("fingerprint", hex(header.fingerprint));
  lines.line("depth", header.depth, "tokens that sort a suffix");
}

bool write_verified(std::ostream& out, const Options& options, StageProgress& progress) {
  const MappedFile file(options.inputs[0]);
  std::uint64_t shown = 0;
  const auto verified = verify_corpus(file.bytes(), [&](std::uint64_t done, std::uint64_t steps) {
    if (shown == 0) progress.start("checking", steps, "parts");
    progress.advance(done - std::exchange(shown, done));
  });
  progress.clear();
  const std::string fault = verified ? "" : words_of(verified.error());
  if (options.json) {
    JsonWriter json(out);
    begin_json(json, options.inputs[0]).member("whole", fault.empty());
    if (!fault.empty()) json.member("fault", fault);
    json.end();
    out << "\n";
  } else {
    out << printable(options.inputs[0]) << ": " << (fault.empty() ? "is whole" : fault) << "\n";
  }
  return fault.empty();
}

void write_query(std::ostream& out, const Options& options) {
  const CorpusInput corpus(options.inputs[0]);
  const CorpusStore store = store_of(corpus);
  const std::vector<Token> context = context_of(options, store.identity().vocabulary);
  const Answer answer = answer_of(store, context, options.depth, options.limit);
  if (options.json) {
    JsonWriter json(out);
    begin_json(json, corpus.path())
        .member("context", context.size())
        .member("matched", answer.matched.size())
        .member("occurrences", answer.found.total)
        .member("ended", answer.found.ended)
        .member("distinct", answer.found.distinct);
    json.key("next").begin_array();
    for (const CorpusStore::NextToken& next : answer.next)
      json.begin_object().member("token", next.token).member("count", next.count).end();
    json.end().end();
    out << "\n";
    return;
  }
  out << "the last " << answer.matched.size() << " of " << context.size() << " tokens occur "
      << grouped(answer.found.total) << " times, followed by " << grouped(answer.found.distinct)
      << " different tokens\n";
  if (answer.found.ended != 0) out << grouped(answer.found.ended) << " times a document ends there\n";
  const tools::Table table(out, {{10}, {16}, {9}});
  if (!answer.next.empty()) table.line({"token", "count", "share"});
  for (const CorpusStore::NextToken& next : answer.next)
    table.line({std::to_string(next.token), grouped(next.count),
                decimal(100 * per(static_cast<double>(next.count), answer.found.total), 2) + "%"});
}

}  // namespace reprise::indexing
