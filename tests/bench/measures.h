#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/file_system.h"
#include "engine/base/job.h"

namespace verger::bench {

/// The measured actions. Each runs in a process of its own; what they return is added to what the
/// driver measures of the process.

/// Yardstick: every file of the database once, in one thread.
Result<nlohmann::json> read_sequentially(const Path& directory);
/// Yardstick: every file of `from` copied to `to` with its MD5, synced, in one thread.
Result<nlohmann::json> copy_with_md5(const Path& from, const Path& to);
/// The stricter yardstick: the same with the MD5 beside the copy, in a second thread.
Result<nlohmann::json> copy_beside_md5(const Path& from, const Path& to);
/// The first one with its SHA-256.
Result<nlohmann::json> copy_with_sha256(const Path& from, const Path& to);
/// A job to its end.
Result<void> run_job(Job& job);
/// A backup into `repository`: the first is full, each later one differential.
Result<nlohmann::json> back_up(const Path& directory, const Path& repository, int threads);
/// Every byte of the latest backup.
Result<nlohmann::json> verify_backup(const Path& repository, int threads);
/// The latest backup. `verify`: everything is read again once it is in place.
Result<nlohmann::json> restore_backup(const Path& repository, const Path& directory, int threads,
                                      bool verify);
/// Makes a small database in `directory`, backs it up in memory, as it is and compressed and
/// encrypted, and changes one byte at each of so many positions of each backup, over all kinds of
/// files. How many changes there were and how many a verification found, by kind.
Result<nlohmann::json> find_changed_bytes(const Path& directory, std::uint64_t positions,
                                          std::uint64_t seed);
/// Appends events of 64 KiB, so that chunks and index grow by so many percent.
Result<nlohmann::json> grow(const Path& directory, int percent);
/// Writes the next scavenge point.
Result<nlohmann::json> write_point(const Path& directory);
/// A whole scavenge to the last point in the log.
Result<nlohmann::json> scavenge(const Path& directory, int threads);
/// A whole verification, which must find no damage.
Result<nlohmann::json> verify(const Path& directory, int threads);
/// What a scavenge to the last point would do.
Result<nlohmann::json> estimate(const Path& directory);
/// Both digests up to the last point, in one pass; temporary files go to `directory`.
Result<nlohmann::json> digest(const Path& directory);
/// Yardstick: the SHA-256 of so many such events and of their streams' names, nothing else.
Result<nlohmann::json> hash_events(std::int64_t streams);
/// The readable digest over made-up events, one for each of so many streams, some with a limit or a
/// tombstone: for memory, without a database. Temporary files go to `directory`.
Result<nlohmann::json> digest_streams(const Path& directory, std::int64_t streams);
Result<nlohmann::json> rebuild_index(const Path& directory);
/// Opens the database for writing, and closes it.
Result<nlohmann::json> open_database(const Path& directory);

}  // namespace verger::bench
