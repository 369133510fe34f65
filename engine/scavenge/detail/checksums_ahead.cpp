#include "engine/scavenge/detail/checksums_ahead.h"

#include <algorithm>
#include <utility>

namespace verger::scavenge::detail {
namespace {

/// Of index tables beside chunks.
constexpr std::size_t kMostTablesCompared = FileVerification::kMostFiles / 2;

}  // namespace

void ChecksumsAhead::begin(const std::vector<const log::Chunk*>& chunks, bool with_tables) {
  std::erase_if(comparisons_, [&](const std::unique_ptr<FileVerification>& comparison) {
    return std::ranges::none_of(chunks, [&](const log::Chunk* chunk) {
      return context_.is_unchecked(*chunk) && comparison->includes(chunk);
    });
  });
  for (const auto* chunk : chunks) {
    if (context_.is_unchecked(*chunk) && comparison_of(chunk) == nullptr) {
      comparisons_.push_back(compare_from(chunk->start_position(), with_tables));
    }
  }
}

std::unique_ptr<FileVerification> ChecksumsAhead::compare_from(LogPosition start,
                                                               bool with_tables) const {
  std::vector<VerifiedFile> files;
  if (with_tables) {
    for (const auto& slot : context_.parts.index.tables()) {
      if (files.size() < kMostTablesCompared && context_.is_unchecked(*slot.table) &&
          comparison_of(slot.table.get()) == nullptr) {
        files.push_back(index::PTable::verified_file(slot.table));
      }
    }
  }
  while (files.size() < FileVerification::kMostFiles && start <= context_.point.position) {
    auto chunk = context_.parts.log.chunk_at(start);
    if (chunk == nullptr) {
      break;
    }
    start = chunk->end_position();
    if (context_.is_unchecked(*chunk)) {
      files.push_back(log::verified_file(std::move(chunk)));
    }
  }
  return std::make_unique<FileVerification>(std::move(files));
}

FileVerification* ChecksumsAhead::comparison_of(const void* object) const {
  const auto found = std::ranges::find_if(
      comparisons_, [&](const auto& comparison) { return comparison->includes(object); });
  return found == comparisons_.end() ? nullptr : found->get();
}

bool ChecksumsAhead::has_compared(const log::Chunk& chunk) const {
  auto* comparison = comparison_of(&chunk);
  return comparison == nullptr || comparison->has_ended(&chunk);
}

Result<void> ChecksumsAhead::finish(const log::Chunk& chunk) {
  const auto pause = [this] { return context_.check_stop(); };
  auto* comparison = comparison_of(&chunk);
  return comparison == nullptr ? chunk.verify_md5(pause) : comparison->finish(&chunk, pause);
}

Result<void> ChecksumsAhead::finish_tables() {
  for (const auto& slot : context_.parts.index.tables()) {
    if (auto* comparison = comparison_of(slot.table.get());
        comparison != nullptr && context_.is_unchecked(*slot.table)) {
      VERGER_RETURN_IF_ERROR(
          comparison->finish(slot.table.get(), [this] { return context_.check_stop(); }));
      context_.note_sound(*slot.table);
    }
  }
  return {};
}

}  // namespace verger::scavenge::detail
