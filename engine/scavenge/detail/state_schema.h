#pragma once

#include "engine/base/result.h"
#include "engine/base/sqlite.h"

namespace verger::scavenge::detail {

/// Sets the server's pragmas, in its order, and checks that they hold.
Result<void> apply_pragmas(sqlite::Database& database, const Path& path, int page_size,
                           std::int64_t cache_size);
/// Creates the server's tables and indexes where they are missing.
Result<void> create_schema(sqlite::Database& database);

}  // namespace verger::scavenge::detail
