// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <reprise_corpus/mapped_corpus.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "common/json.hpp"

/// \file The reader of a folder in which fleet.py publishes corpora. README.md describes the folder.

namespace fleet {

/// A file that is open with a shared lock. fleet.py removes a generation only after it gets the exclusive lock, so the
/// file stays until the lease ends. The system ends the leases of a process that dies.
class Lease {
 public:
  Lease(Lease&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Lease& operator=(Lease&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Lease() {
    if (file_ >= 0) ::close(file_);
  }

  /// Returns a lease of the file, or nothing if there is no such file. On a file system without locks, the lease does
  /// not keep the file; there fleet.py needs --keep.
  static std::optional<Lease> of(const std::filesystem::path& path) {
    Lease lease(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (lease.file_ < 0) return std::nullopt;
    static_cast<void>(::flock(lease.file_, LOCK_SH));
    // The file may have been removed between the two calls.
    struct stat opened {};
    struct stat named {};
    const bool same = ::fstat(lease.file_, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
                      opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    return same ? std::optional<Lease>(std::move(lease)) : std::nullopt;
  }

 private:
  explicit Lease(int file) noexcept : file_(file) {}

  int file_;
};

/// The current generation of a published corpus. Threads: one at a time. Call refresh() while no drafter uses store().
class PublishedCorpus {
 public:
  PublishedCorpus(std::filesystem::path folder, reprise::CorpusStore::Identity identity)
      : folder_(std::move(folder)), identity_(identity) {}

  /// Opens the generation that the manifest names, unless it is open already, and then closes the old one. Without a
  /// manifest, closes the old one. Returns an empty text, or the reason why the old generation stays open. Cost: reads
  /// the manifest; a server with many requests calls it once a second.
  std::string refresh() {
    std::string fault;
    for (int attempt = 0; attempt < 3; ++attempt) {
      std::error_code error;
      if (!std::filesystem::exists(folder_ / "manifest.json", error)) {
        if (error) return "manifest.json cannot be read: " + error.message();
        open_.reset();
        return {};
      }
      const auto named = read_manifest(fault);
      if (!named) return fault;
      if (open_ && open_->name.number == named->number && open_->name.file == named->file) return {};
      fault = named->file + ": the manifest names this file, but it does not exist; publish again";
      auto lease = Lease::of(folder_ / named->file);
      if (!lease) continue;  // replaced and removed since the manifest was read
      auto corpus = reprise::MappedCorpus::open(folder_ / named->file, identity_);
      if (!corpus) return named->file + ": " + std::string(corpus.error().message);
      open_ = Generation{*named, std::move(*lease), *std::move(corpus)};
      return {};
    }
    return fault;
  }

  /// Returns the store for NgramOptions::stores; null: no generation is open.
  [[nodiscard]] const reprise::CorpusStore* store() const { return open_ ? &open_->corpus.store() : nullptr; }
  /// Returns the number of the open generation; 0: none is open.
  [[nodiscard]] std::uint64_t generation() const { return open_ ? open_->name.number : 0; }

 private:
  struct Name {
    std::uint64_t number = 0;
    std::string file;
  };
  struct Generation {
    Name name;
    Lease lease;
    reprise::MappedCorpus corpus;
  };

  [[nodiscard]] std::optional<Name> read_manifest(std::string& fault) const {
    std::ifstream in(folder_ / "manifest.json", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    reprise::tools::Json json;
    if (const auto error = reprise::tools::parse_json(text, json)) {
      fault = "manifest.json: line " + std::to_string(error->line) + ": " + error->message + "; publish again";
      return std::nullopt;
    }
    const auto* const number = json.find("generation");
    const auto* const file = json.find("file");
    const bool named = number != nullptr && number->number() != nullptr && number->number()->integer > 0 &&
                       file != nullptr && file->string() != nullptr && file->string()->find('/') == std::string::npos;
    if (!named) {
      fault = "manifest.json: names no generation and no file in its folder; publish again";
      return std::nullopt;
    }
    return Name{static_cast<std::uint64_t>(*number->number()->integer), *file->string()};
  }

  std::filesystem::path folder_;
  reprise::CorpusStore::Identity identity_;
  std::optional<Generation> open_;
};

}  // namespace fleet
