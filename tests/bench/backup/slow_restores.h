#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace verger::bench {

/// Restores from object storage behind a line of a certain speed: with the backup's index tables,
/// with tables made from the log, and with the one of both that the restore chooses by itself.
struct SlowRestores {
  std::uint64_t events = 0;          ///< small ones, so that tables are much beside the log
  std::vector<std::uint64_t> rates;  ///< of the line, KiB a second
  bool compressed = false;           ///< the repository
};

/// In `directory`, with real processes: an S3-compatible server (npm), `verger-db`. 0: what the
/// restore chose took no more than a tenth longer than the better one, at each rate.
int measure_slow_restores(const SlowRestores& wanted, const std::filesystem::path& directory);

}  // namespace verger::bench
