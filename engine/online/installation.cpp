#include "engine/online/installation.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/base/file_links.h"
#include "engine/base/sqlite.h"

namespace verger::online_scavenge {
namespace {

using scavenge::ScavengeState;
using scavenge::Stage;

/// The end of the last chunk before the first one that is left: all up to there are executed.
std::optional<std::int32_t> executed_up_to(const std::set<std::int32_t>& left) {
  return left.empty() || *left.begin() == 0 ? std::nullopt : std::optional(*left.begin() - 1);
}

std::string normalised(const std::optional<std::string>& text) {
  const auto checkpoint = text ? scavenge::decode_checkpoint(*text) : std::nullopt;
  return checkpoint ? scavenge::encode_checkpoint(*checkpoint) : std::string();
}

}  // namespace

Result<std::unique_ptr<ScavengeState>> open_shadow_state(FileSystem& files, const Path& database,
                                                         index::HashFunction hash,
                                                         scavenge::StateOptions options) {
  const auto index = shadow_index(database);
  const auto path = ScavengeState::path_in(index);
  VERGER_TRY(const bool there, files.exists(path));
  if (there) {
    VERGER_TRY(options.page_size, scavenge::stored_page_size(files, path, options.page_size));
  }
  return ScavengeState::open(files, index, hash, options);
}

Result<Standing> standing_of(FileSystem& files, const Path& database, const PreparedChunk& chunk) {
  const auto live = live_chunk(files, database, chunk.start);
  if (!live) {
    const bool gone =
        live.error().code == Errc::kNotFound || live.error().code == Errc::kCorruption;
    return gone ? Result<Standing>(Standing::kForeign) : live.error();
  }
  return *live == chunk.source ? Standing::kWaiting
         : live->chunk_id == chunk.made.chunk_id && live->md5 == chunk.made.md5 &&
                 live->size == chunk.made.size
             ? Standing::kSwitched
             : Standing::kForeign;
}

Result<void> offer_chunk(FileSystem& files, const Path& database, const PreparedChunk& chunk,
                         const std::string& name) {
  VERGER_RETURN_IF_ERROR(
      link_file(files, shadow_directory(database) / chunk.made.name, database / name));
  VERGER_FAILPOINT("online.switch.offered");
  return files.sync_directory(database);
}

Result<std::optional<Resumable>> find_resumable(FileSystem& files, const DatabasePlace& place) {
  auto preparation = load_preparation(files, place.database);
  if (!preparation) {
    const auto code = preparation.error().code;
    // One that was torn cannot be: it is written durably. What cannot be read is made anew.
    return code == Errc::kNotFound || code == Errc::kCorruption
               ? Result<std::optional<Resumable>>(std::nullopt)
               : preparation.error();
  }
  VERGER_TRY(const bool waits, files.exists(ScavengeState::path_in(shadow_index(place.database))));
  VERGER_TRY(const auto checkpoint, settle_state(files, place.index_directory()));
  if (!waits) {
    return Resumable{.preparation = *std::move(preparation), .installed = true};
  }
  if (!preparation->compared || checkpoint != preparation->checkpoint_before) {
    return std::nullopt;
  }
  return Resumable{.preparation = *std::move(preparation), .installed = false};
}

Result<std::string> settle_state(FileSystem& files, const Path& index_directory) {
  const auto path = ScavengeState::path_in(index_directory);
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return std::string();
  }
  VERGER_TRY(auto database,
             sqlite::Database::open(files, path, {.create = false, .own_state = false}));
  VERGER_TRY(const auto tables,
             database.query_int("SELECT count(*) FROM sqlite_master WHERE name = 'Checkpoint'"));
  std::optional<std::string> text;
  if (tables > 0) {
    VERGER_TRY(text, database.query_text("SELECT value FROM Checkpoint WHERE key = 0"));
  }
  VERGER_TRY(const auto busy, database.query_int("PRAGMA wal_checkpoint(TRUNCATE)"));
  if (busy > 0) {
    return Error{Errc::kRefused, fmt::format("{}: is in use", path.string())};
  }
  VERGER_RETURN_IF_ERROR(database.close());
  return normalised(text);
}

Result<void> finish_state(FileSystem& files, const Path& database, const Preparation& preparation,
                          const std::set<std::int32_t>& left, index::HashFunction hash) {
  const auto path = ScavengeState::path_in(shadow_index(database));
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return Error{Errc::kNotFound, fmt::format("{}: was installed already", path.string())};
  }
  VERGER_TRY(auto state, open_shadow_state(files, database, hash));
  VERGER_RETURN_IF_ERROR(state->begin());
  for (const auto& chunk : preparation.chunks) {
    VERGER_RETURN_IF_ERROR(state->reset_weights(chunk.start, chunk.end));
    for (auto n = chunk.start; n <= chunk.end && left.contains(chunk.start); ++n) {
      if (const auto weight = preparation.weights.find(n); weight != preparation.weights.end()) {
        VERGER_RETURN_IF_ERROR(state->add_weight(n, weight->second));
      }
    }
  }
  scavenge::Checkpoint checkpoint{.point = preparation.point, .stage = Stage::kMergingChunks};
  if (!left.empty()) {
    checkpoint.stage = Stage::kExecutingChunks;
    // With a threshold below 0 chunks without weight are executed, too: these are at least not
    // begun from the first one again.
    if (preparation.point.threshold < 0) {
      checkpoint.done_chunk = executed_up_to(left);
    }
  }
  VERGER_RETURN_IF_ERROR(state->set_checkpoint(checkpoint));
  VERGER_RETURN_IF_ERROR(state->commit());
  return state->make_durable();
}

Result<void> install_state(const Machine& machine, const DatabasePlace& place,
                           const Preparation& preparation) {
  auto& files = machine.files;
  const auto index_directory = place.index_directory();
  const auto target = ScavengeState::path_in(index_directory);
  const auto source = ScavengeState::path_in(shadow_index(place.database));
  VERGER_RETURN_IF_ERROR(files.make_directories(target.parent_path()));
  VERGER_RETURN_IF_ERROR(files.sync_directory(index_directory));
  VERGER_TRY(const auto checkpoint, settle_state(files, index_directory));
  if (checkpoint != preparation.checkpoint_before) {
    return Error{Errc::kConflict,
                 fmt::format("{}: another scavenge has changed it meanwhile", target.string())};
  }
  // The server does not sync what it switches.
  VERGER_RETURN_IF_ERROR(files.sync_directory(place.database));
  VERGER_FAILPOINT("online.state.before-install");
  // Settled, it has neither; one that a crash brought back would be read into the new file.
  for (const auto* suffix : {"-wal", "-shm"}) {
    const Path beside(target.string() + suffix);
    VERGER_TRY(const bool there, files.exists(beside));
    if (there) {
      VERGER_RETURN_IF_ERROR(files.remove(beside));
    }
  }
  VERGER_RETURN_IF_ERROR(files.sync_directory(target.parent_path()));
  VERGER_TRY(const auto file, files.open(source, OpenMode::kReadWrite));
  VERGER_RETURN_IF_ERROR(file->sync());
  VERGER_RETURN_IF_ERROR(files.rename(source, target));
  VERGER_FAILPOINT("online.state.after-install");
  return files.sync_directory(target.parent_path());
}

}  // namespace verger::online_scavenge
