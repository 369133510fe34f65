#include "engine/redaction/found_in_events.h"

#include <algorithm>

#include "engine/redaction/redaction_plan.h"

namespace verger::redaction {
namespace {

Result<void> name_in_chunk(const std::shared_ptr<const log::Chunk>& chunk, SearchedFile& file) {
  auto& found = file.found.occurrences;  // by offset, as records are
  VERGER_TRY(auto scanner, log::ChunkScanner::open(chunk, chunk->start_position()));
  auto at = found.begin();
  while (at != found.end()) {
    VERGER_TRY(const auto record, scanner.next());
    if (!record) {
      break;
    }
    const auto* prepare = record->prepare();
    const auto end = record->file_offset + record->framed.size();
    for (; at != found.end() && at->offset < end; ++at) {
      if (prepare != nullptr && at->offset >= record->file_offset &&
          at->offset + at->length <= end && !prepare->has(log::prepare_flags::kIsRedacted)) {
        at->event = prepare->has(log::prepare_flags::kIsCommitted)
                        ? name_of(prepare->stream, prepare->event_number())
                        : std::string(prepare->stream);
      }
    }
  }
  return {};
}

}  // namespace

Result<void> name_events(const log::TransactionLog& log, std::vector<SearchedFile>& files) {
  for (const auto& chunk : log.chunks()) {
    const auto path = chunk->path().lexically_normal();
    const auto file = std::ranges::find(files, path, &SearchedFile::path);
    if (file != files.end() && !file->found.occurrences.empty()) {
      VERGER_RETURN_IF_ERROR(name_in_chunk(chunk, *file));
    }
  }
  return {};
}

}  // namespace verger::redaction
