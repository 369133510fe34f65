#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/background_stage.h"
#include "engine/scavenge/files_at_once.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge::detail {

/// The new chunk files that a stage has under way, as many as FilesAtOnce allows, from their
/// records to their end: a slice of each is copied at a time, side by side; one whose records are
/// all copied is finished, which the disk and a checksum have to be waited for; then it is taken.
/// With a thread of its own files are finished while the next ones are written, one after the
/// other; without one at once.
///
/// A `NewFile` has `Result<bool> copy(std::uint32_t records)`: continues for about so many records;
/// true once all are copied. And `Result<void> finish()`: the file is complete, and on the disk.
/// Both are called by one thread at a time. One thread uses this class; its destruction drops what
/// was not taken.
template <class NewFile>
class NewFiles {
 public:
  struct Taken {
    std::unique_ptr<NewFile> file;
    Result<void> outcome;  ///< of copy() or finish()
  };

  NewFiles(const RunContext& context, ParallelRunner& runner) : at_once_(context), runner_(runner) {
    if (at_once_.finishes_in_background()) {
      finishing_.emplace([](Entry& entry) { entry.outcome = entry.file->finish(); });
    }
  }

  [[nodiscard]] const FilesAtOnce& at_once() const { return at_once_; }
  /// May another file be begun beside these and `finished`, which were taken but still stand beside
  /// what they replace?
  [[nodiscard]] bool allows_another(std::size_t finished) {
    return at_once_.allows(copying_.size(), to_be_taken() + finished);
  }
  void add(std::unique_ptr<NewFile> file) {
    copying_.push_back(std::make_unique<Entry>(std::move(file)));
  }
  /// There is none that was not taken.
  [[nodiscard]] bool empty() { return copying_.empty() && to_be_taken() == 0; }

  /// Copies a slice of each. `copied` is called with each whose records are all copied, before it
  /// is finished.
  template <class Copied>
  void copy(std::uint32_t records, const Copied& copied) {
    std::vector<std::function<void()>> pieces;
    pieces.reserve(copying_.size());
    for (const auto& entry : copying_) {
      pieces.emplace_back([&entry, records] { entry->all_copied = entry->file->copy(records); });
    }
    runner_.run(pieces);
    for (auto& entry : copying_) {
      if (!entry->all_copied) {
        entry->outcome = std::move(entry->all_copied).error();
        failed_.push_back(std::move(entry));
      } else if (*entry->all_copied) {
        copied(*entry->file);
        finish(std::move(entry));
      }
    }
    std::erase(copying_, nullptr);
  }

  /// A file that could not be copied, or else the oldest one that is finished; waits only where no
  /// file is being copied and `may_wait`. nullopt: there is none.
  std::optional<Taken> take(bool may_wait) {
    std::unique_ptr<Entry> entry;
    if (!failed_.empty()) {
      entry = take_first(failed_);
    } else if (finishing_) {
      entry = may_wait && copying_.empty() ? finishing_->take() : finishing_->take_done();
    } else if (!finished_.empty()) {
      entry = take_first(finished_);
    }
    if (entry == nullptr) {
      return std::nullopt;
    }
    return Taken{.file = std::move(entry->file), .outcome = std::move(entry->outcome)};
  }
  /// All that are left, complete or not: those that were to be finished, then the others.
  std::vector<std::unique_ptr<NewFile>> take_all() {
    std::vector<std::unique_ptr<NewFile>> files;
    auto others = std::exchange(copying_, {});
    while (auto taken = take(/*may_wait=*/true)) {
      files.push_back(std::move(taken->file));
    }
    for (auto& entry : others) {
      files.push_back(std::move(entry->file));
    }
    return files;
  }

 private:
  struct Entry {
    explicit Entry(std::unique_ptr<NewFile> of) : file(std::move(of)) {}

    std::unique_ptr<NewFile> file;
    Result<bool> all_copied = false;  ///< by the latest slice
    Result<void> outcome;
  };
  using Entries = std::deque<std::unique_ptr<Entry>>;

  [[nodiscard]] std::size_t to_be_taken() {
    return failed_.size() + finished_.size() + (finishing_ ? finishing_->size() : 0);
  }
  void finish(std::unique_ptr<Entry> entry) {
    if (finishing_) {
      finishing_->give(std::move(entry));
      return;
    }
    entry->outcome = entry->file->finish();
    finished_.push_back(std::move(entry));
  }
  static std::unique_ptr<Entry> take_first(Entries& entries) {
    auto entry = std::move(entries.front());
    entries.pop_front();
    return entry;
  }

  FilesAtOnce at_once_;
  ParallelRunner& runner_;
  std::vector<std::unique_ptr<Entry>> copying_;
  Entries failed_;    ///< could not be copied
  Entries finished_;  ///< by the calling thread
  std::optional<BackgroundStage<Entry>> finishing_;
};

}  // namespace verger::scavenge::detail
