#include "engine/log/log_flush.h"

#include <array>

#include "engine/base/failpoint.h"

namespace verger::log {

LogFlush::LogFlush(std::shared_ptr<File> chunk, std::shared_ptr<File> writer_checkpoint,
                   std::int64_t end)
    : chunk_(std::move(chunk)), writer_checkpoint_(std::move(writer_checkpoint)), end_(end) {}

Result<void> LogFlush::sync() {
  const std::lock_guard once(mutex_);
  if (!outcome_) {
    outcome_ = sync_both();
  }
  return *outcome_;
}

Result<void> LogFlush::sync_both() {
  VERGER_RETURN_IF_ERROR(chunk_->sync());
  VERGER_FAILPOINT("log.flush.before-writer-chk");
  std::array<std::byte, sizeof(end_)> bytes{};
  store_le(bytes.data(), end_);
  VERGER_RETURN_IF_ERROR(writer_checkpoint_->write_at(0, bytes));
  return writer_checkpoint_->sync();
}

}  // namespace verger::log
