#include "engine/redaction/detail/chunk_digests.h"

#include <array>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/log/record.h"

namespace verger::redaction::detail {

ChunkDigests::ChunkDigests(std::shared_ptr<const log::Chunk> before,
                           std::shared_ptr<const log::Chunk> after)
    : files_{std::move(before), std::move(after)} {}

Result<bool> ChunkDigests::step(std::uint64_t bytes) {
  for (std::uint64_t read = 0; read <= bytes && reading_ < files_.size();) {
    auto& file = files_.at(reading_);
    if (!scanner_) {
      VERGER_TRY(scanner_, log::ChunkScanner::open(file, file->start_position()));
    }
    VERGER_TRY(const auto record, scanner_->next());
    if (!record) {
      (reading_ == 0 ? before_ : after_) = std::exchange(hash_, Sha256()).finish();
      scanner_.reset();
      file.reset();
      ++reading_;
      continue;
    }
    const auto payload =
        record->framed.subspan(sizeof(std::uint32_t), record->framed.size() - log::kFramingSize);
    std::array<std::byte, 12> head{};
    store_le(head.data(), record->position().value());
    store_le(head.data() + 8, static_cast<std::uint32_t>(payload.size()));
    hash_.update(head);
    hash_.update(payload);
    read += record->framed.size();
  }
  return reading_ == files_.size();
}

}  // namespace verger::redaction::detail
