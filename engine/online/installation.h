#pragma once

#include <memory>
#include <set>
#include <string>

#include "engine/index/stream_hash.h"
#include "engine/online/prepared_chunks.h"
#include "engine/online/shadow.h"
#include "engine/scavenge/scavenge_state.h"

/// What a native run made comes into a running server's directory: chunk files that the server
/// switches in, and then the state. All of it only while the server's chunk lock is held: then no
/// scavenge has scavenging.db open, and no chunk is switched by another.
namespace verger::online_scavenge {

/// Of the shadow; with the page size of the server's file, where there is one.
Result<std::unique_ptr<scavenge::ScavengeState>> open_shadow_state(
    FileSystem& files, const Path& database, index::HashFunction hash,
    scavenge::StateOptions options = {});

/// What became of a chunk's file in the database directory.
enum class Standing : std::uint8_t {
  kWaiting,   ///< it is the one that was scavenged
  kSwitched,  ///< it is the one that was made
  kForeign,   ///< another one: it was switched, cut or received meanwhile
};
/// Errors: kCorruption, kIo.
Result<Standing> standing_of(FileSystem& files, const Path& database, const PreparedChunk& chunk);

/// Links the chunk that was made into the database directory, as `name`, which offered_name() gave.
/// Its content and its name are durable. Errors: kExists, kNoSpace, kIo.
Result<void> offer_chunk(FileSystem& files, const Path& database, const PreparedChunk& chunk,
                         const std::string& name);

/// What an interrupted run has left in the shadow, and can be continued.
struct Resumable {
  Preparation preparation{};
  bool installed = false;  ///< its state is in the server's place already
};
/// nullopt: nothing, or what no longer holds: remove_shadow(). Errors: those of settle_state().
Result<std::optional<Resumable>> find_resumable(FileSystem& files, const DatabasePlace& place);

/// Closes what a killed scavenge may have left open of the server's scavenging.db; the text of its
/// checkpoint, empty where there is none. Errors: kRefused: it is in use; kCorruption, kIo.
Result<std::string> settle_state(FileSystem& files, const Path& index_directory);

/// Makes the state in the shadow what the server is to continue with: at MergingChunks, or, with
/// chunks that are `left` to the server (their first numbers), at ExecutingChunks with the weights
/// of these alone. May be repeated with others. Error: kNotFound: it was installed already.
Result<void> finish_state(FileSystem& files, const Path& database, const Preparation& preparation,
                          const std::set<std::int32_t>& left, index::HashFunction hash);

/// Puts the state of the shadow in the place of the server's, durably. The names in the database
/// directory are made durable before: a state that knows of chunks which a power cut takes back
/// would leave in them what no later scavenge removes. After a crash either state is there whole.
/// Errors: kConflict: a scavenge has changed the server's state since the shadow was made;
/// kRefused: it is in use; kNoSpace, kIo.
Result<void> install_state(const Machine& machine, const DatabasePlace& place,
                           const Preparation& preparation);

}  // namespace verger::online_scavenge
