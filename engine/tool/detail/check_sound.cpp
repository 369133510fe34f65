#include "engine/tool/detail/check_sound.h"

#include <atomic>
#include <functional>

#include "engine/scavenge/scavenge_job.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

struct Piece {
  std::uint64_t bytes = 0;
  std::function<Result<void>()> compare;
};

std::vector<Piece> pieces_of(const streams::Database& database) {
  std::vector<Piece> pieces;
  for (const auto& chunk : database.transaction_log().chunks()) {
    if (chunk->completed()) {
      pieces.push_back({.bytes = chunk->file_size(),
                        .compare = [chunk] { return chunk->verify_md5(&StopSignals::check); }});
    }
  }
  for (const auto& slot : database.stream_index().tables()) {
    if (slot.table->count() > 0) {
      pieces.push_back({.bytes = slot.table->file_size(), .compare = [table = slot.table] {
                          return table->verify_md5(&StopSignals::check);
                        }});
    }
  }
  return pieces;
}

}  // namespace

Result<void> check_sound(ToolContext& tool, const streams::Database& database) {
  VERGER_RETURN_IF_ERROR(scavenge::check_table_versions(database.stream_index()));
  const auto pieces = pieces_of(database);
  std::uint64_t total = 0;
  for (const auto& piece : pieces) {
    total += piece.bytes;
  }
  std::vector<Result<void>> outcomes(pieces.size());
  std::atomic<std::uint64_t> done = 0;
  Progress progress(tool, "checksums", total);
  run_parallel(
      pieces.size(), default_threads(),
      [&](std::size_t i) {
        outcomes[i] = StopSignals::check();
        if (outcomes[i]) {
          outcomes[i] = pieces[i].compare();
        }
        done.fetch_add(pieces[i].bytes, std::memory_order_relaxed);
      },
      [&] { progress.update(done.load(std::memory_order_relaxed)); });
  for (auto& outcome : outcomes) {
    VERGER_RETURN_IF_ERROR(std::move(outcome));
  }
  return {};
}

}  // namespace verger::tool
