// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/core/result.hpp"
#include "reprise/corpus/corpus_store.hpp"
#include "reprise/corpus/detail/map_calls.hpp"

/// \file Maps the file of a corpus into memory. Only this header and map_calls.hpp call the operating system; the
/// umbrella reprise.hpp does not include them.

namespace reprise::inline v0 {

namespace detail {

/// Returns an Error for this error number of a file that is read.
inline Error map_error(int error) noexcept {
  const auto sentence = [error]() -> std::string_view {
    switch (error) {
      case ENAMETOOLONG:
        return "the name of the corpus is too long: shorten it";
      case ENOTDIR:
        return "a folder in the path of the corpus is not a folder: check the path";
      case EACCES:
      case EPERM:
        return "the operating system denies access to the corpus: check the permissions of the file and of its folder";
      case ENOMEM:
        return "there is no address space for the corpus: close other corpora, or raise the limit of the process";
      case EMFILE:
      case ENFILE:
        return "too many files are open: close some of them";
      default:
        return "the corpus cannot be read: check its disk and its file system";
    }
  };
  return {ErrorCode::file_failed, sentence(), static_cast<std::uint64_t>(error)};
}

/// The bytes of a file. The destructor unmaps them.
template <class Calls>
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (!bytes_.empty()) Calls::unmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Maps the whole file. An empty file gives no bytes.
  static Result<Mapping> of(const std::filesystem::path& path) noexcept {
    const auto& name = path.native();
    if (name.empty() || name.find(typename Calls::PathChar{0}) != name.npos)
      return Error{ErrorCode::bad_file_name, "the name of the corpus is empty or has a NUL in it: give another one"};
    int file = -1;
    const int error = Calls::open(path.c_str(), file);
    if (error == ENOENT) return Error{ErrorCode::no_such_file, "there is no corpus of this name: check the path"};
    if (error != 0) return map_error(error);
    auto mapping = of(file);
    Calls::close(file);  // the mapping stays
    return mapping;
  }

 private:
  static Result<Mapping> of(int file) noexcept {
    bool regular = false;
    std::uint64_t size = 0;
    if (const int error = Calls::measure(file, regular, size)) return map_error(error);
    if (!regular)
      return Error{ErrorCode::not_a_regular_file, "the path is a folder or a device: give the path of a corpus"};
    if (size > std::numeric_limits<std::size_t>::max()) return map_error(ENOMEM);
    Mapping mapping;
    if (size == 0) return mapping;
    const std::byte* data = nullptr;
    if (const int error = Calls::map(file, static_cast<std::size_t>(size), data)) return map_error(error);
    mapping.bytes_ = {data, static_cast<std::size_t>(size)};
    return mapping;
  }

  std::span<const std::byte> bytes_;
};

}  // namespace detail

/// The file of a corpus, mapped for reading. Processes that map the same file share its memory.
///
/// **Replacing.** Publish a new corpus under the same name by renaming, as reprise-index and save_file() do. An open
/// MappedCorpus then keeps reading the old file. Never shorten or overwrite a file that is mapped: reading a part that
/// no longer exists ends the process (SIGBUS), as does a disk that fails.
///
/// **Threads.** Any number of threads may use store(). Do not move or destroy the object while drafters use the store.
class MappedCorpus {
 public:
  /// Maps nothing; the store is empty.
  MappedCorpus() noexcept = default;

  /// Maps the file and checks its header. Links are followed. Errors: bad_file_name; no_such_file; not_a_regular_file;
  /// file_failed (`value`: a number from <cerrno>); those of CorpusStore::open(). Cost: the same for any size.
  [[nodiscard]] static Result<MappedCorpus> open(const std::filesystem::path& path) noexcept {
    auto mapping = detail::Mapping<detail::MapCalls>::of(path);
    if (!mapping) return mapping.error();
    const auto store = CorpusStore::open(mapping->bytes());
    if (!store) return store.error();
    return MappedCorpus(*std::move(mapping), *store);
  }
  /// Like the function above, and refuses a corpus of another tokenizer: other_vocabulary, other_tokenizer.
  [[nodiscard]] static Result<MappedCorpus> open(const std::filesystem::path& path,
                                                 const CorpusStore::Identity& expected) noexcept {
    auto mapping = detail::Mapping<detail::MapCalls>::of(path);
    if (!mapping) return mapping.error();
    const auto store = CorpusStore::open(mapping->bytes(), expected);
    if (!store) return store.error();
    return MappedCorpus(*std::move(mapping), *store);
  }

  /// Returns the store, for NgramOptions::stores.
  [[nodiscard]] const CorpusStore& store() const noexcept { return store_; }
  /// Returns the bytes of the file, for verify_corpus().
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return mapping_.bytes(); }

 private:
  MappedCorpus(detail::Mapping<detail::MapCalls> mapping, const CorpusStore& store) noexcept
      : mapping_(std::move(mapping)), store_(store) {}

  detail::Mapping<detail::MapCalls> mapping_;
  CorpusStore store_;
};

}  // namespace reprise
