// SPDX-License-Identifier: Apache-2.0
#include "build.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/interrupt.hpp"
#include "documents.hpp"
#include "range_sort.hpp"

namespace reprise::indexing {
namespace {

using tools::InputError;
using Clock = std::chrono::steady_clock;

/// Writes documents into a corpus, except those that are excluded.
class Selection : public DocumentSink {
 public:
  Selection(CorpusFile& file, Exclusions& exclusions, Built& built)
      : file_(file), exclusions_(exclusions), built_(built) {}

  bool begin(const std::string& name, const std::string& where) override {
    if (exclusions_.contains(name)) {
      ++built_.excluded;
      return false;
    }
    where_ = where;
    file_.begin_document(name);
    return true;
  }
  void add(std::span<const std::uint32_t> tokens, const FieldName& field) override { file_.add(tokens, where_, field); }
  void end() override {
    if (!file_.end_document()) ++built_.empty;
  }

 private:
  CorpusFile& file_;
  Exclusions& exclusions_;
  Built& built_;
  std::string where_;
};

/// Finds the largest id of the documents that are not excluded.
class LargestId : public DocumentSink {
 public:
  explicit LargestId(Exclusions& exclusions) : exclusions_(exclusions) {}

  bool begin(const std::string& name, const std::string& where) override {
    where_ = where;
    return !exclusions_.contains(name);
  }
  void add(std::span<const std::uint32_t> tokens, const FieldName& field) override {
    constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] >= most)
        throw InputError(where_ + ": " + field(i) + ": the id " + std::to_string(tokens[i]) +
                         " is too large; ids are below " + std::to_string(most));
      vocabulary = std::max<std::size_t>(vocabulary, std::size_t{tokens[i]} + 1);
    }
  }
  void end() override {}

  std::size_t vocabulary = 1;

 private:
  Exclusions& exclusions_;
  std::string where_;
};

template <class Word, class Place>
std::uint64_t sort_into(CorpusFile& file, const SortSettings& settings) {
  RangeSort<Word, Place> sort(SuffixText<Word>(file.text()), settings);
  return sort.sort([&](std::span<const Place> places) { file.add_places(places); }).ranges;
}

std::uint64_t write_index(CorpusFile& file, const SortSettings& settings) {
  const bool narrow_words = file.header().token_bytes == 2;
  const bool narrow_places = file.header().place_bytes == 4;
  if (narrow_words && narrow_places) return sort_into<std::uint16_t, std::uint32_t>(file, settings);
  if (narrow_words) return sort_into<std::uint16_t, std::uint64_t>(file, settings);
  if (narrow_places) return sort_into<std::uint32_t, std::uint32_t>(file, settings);
  return sort_into<std::uint32_t, std::uint64_t>(file, settings);
}

std::uint64_t bytes_of(const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace

void check_interrupt(const std::string& output) {
  if (tools::InterruptFlag::raised()) throw BuildError(output + ": was not written, because of an interrupt");
}

void check_output(const std::string& output, const std::vector<std::string>& inputs, const std::string& kind) {
  tools::check_replaceable(output, "--output " + output);
  std::vector<tools::InputFile> read;
  for (const std::string& input : inputs) read.push_back({kind, input});
  tools::check_not_an_input(output, "--output " + output, read);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void set_totals(Built& built, const std::string& output, const CorpusFile& file, const Exclusions& exclusions) {
  built.path = output;
  built.vocabulary = file.header().vocabulary;
  built.documents = file.header().documents;
  built.tokens = file.header().tokens();
  built.bytes = layout_of(file.header()).file_bytes;
  built.unused = exclusions.unused();
}

Built build(const Options& options, StageProgress& progress) {
  const Clock::time_point begin = Clock::now();
  SortSettings settings;
  settings.memory = options.memory;
  settings.threads = options.threads != 0 ? options.threads : std::max(std::thread::hardware_concurrency(), 1U);
  const std::vector<std::string> files = files_of(options.inputs);
  check_output(options.output, files, "the input");
  Exclusions exclusions = options.exclude.empty() ? Exclusions() : Exclusions(options.exclude);
  DocumentReader reader{options.tokenizer, Fingerprint(options.fingerprint), {}};
  reader.report = [&](std::uint64_t bytes) {
    progress.advance(bytes);
    check_interrupt(options.output);
  };
  const auto read = [&](const std::string& stage, DocumentSink& sink) {
    progress.start(stage, bytes_of(files), "bytes");
    for (const std::string& path : files) reader.read(path, sink);
  };

  Built built;
  settings.vocabulary = options.vocabulary;
  built.vocabulary_given = options.vocabulary != 0;
  if (!built.vocabulary_given) {
    LargestId largest(exclusions);
    read("looking for the largest id", largest);
    settings.vocabulary = largest.vocabulary;
  }
  check_memory(settings);
  CorpusFile file(options.output, settings.vocabulary);
  Selection selection(file, exclusions, built);
  read("reading", selection);
  if (file.header().documents == 0) throw InputError("no document has tokens; check the inputs and --exclude");
  file.end_text(reader.fingerprint.value());
  built.read_seconds = seconds_since(begin);

  settings.depth = file.header().depth;
  settings.report = [&](std::size_t suffixes) {
    progress.advance(suffixes);
    check_interrupt(options.output);
  };
  progress.start("sorting", file.header().tokens(), "tokens");
  built.ranges = write_index(file, settings);
  file.finish();
  built.sort_seconds = seconds_since(begin) - built.read_seconds;
  set_totals(built, options.output, file, exclusions);
  return built;
}

}  // namespace reprise::indexing
