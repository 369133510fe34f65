#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/transaction_log.h"

namespace verger::redaction {

/// What the names of our copies end with until they are switched in.
inline constexpr std::string_view kTemporarySuffix = ".redact.tmp";

/// A file in the database directory that is not live and may hold what live files no longer do.
struct Leftover {
  enum class Kind : std::uint8_t {
    kSuperseded,  ///< a chunk file that another one replaces
    kTemporary,   ///< *.tmp
  };
  std::string name;
  Kind kind = Kind::kTemporary;
  std::uint64_t size = 0;
  /// An interrupted redaction left it, or may have: a copy of ours, what a copy has replaced, a new
  /// chunk or checkpoint file that did not get its name yet (those hold no record). It goes with
  /// the next redaction.
  bool of_redaction = false;
};

/// All of them, by name. Every opening for writing removes them, a server's start as well.
Result<std::vector<Leftover>> find_leftovers(FileSystem& files, const log::TransactionLog& log);

}  // namespace verger::redaction
