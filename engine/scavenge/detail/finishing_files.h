#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/background_stage.h"

namespace verger::scavenge::detail {

/// New chunk files that lack their end: what the disk and a checksum have to be waited for. With a
/// thread of its own that happens while the next files are written, one after the other; without
/// one at once. `NewFile::finish()` does it, and keeps what came of it. One thread uses it.
template <class NewFile>
class FinishingFiles {
 public:
  explicit FinishingFiles(bool in_background) {
    if (in_background) {
      finishing_.emplace([](NewFile& file) { file.finish(); });
    }
  }

  void give(std::unique_ptr<NewFile> file) {
    if (finishing_) {
      finishing_->give(std::move(file));
      return;
    }
    file->finish();
    finished_.push_back(std::move(file));
  }
  /// The oldest one, if it is finished, or else, with `wait`, once it is; nullptr: there is none.
  std::unique_ptr<NewFile> take(bool wait) {
    if (finishing_) {
      return wait ? finishing_->take() : finishing_->take_done();
    }
    if (finished_.empty()) {
      return nullptr;
    }
    auto file = std::move(finished_.front());
    finished_.pop_front();
    return file;
  }
  [[nodiscard]] std::size_t size() { return finishing_ ? finishing_->size() : finished_.size(); }

 private:
  std::deque<std::unique_ptr<NewFile>> finished_;  ///< by the calling thread
  std::optional<BackgroundStage<NewFile>> finishing_;
};

}  // namespace verger::scavenge::detail
