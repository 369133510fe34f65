#pragma once

#include "engine/base/sqlite.h"

namespace verger::controller::detail {

/// Makes the tables of a new journal, and adds those that a journal of an older schema lacks, in
/// one transaction. `path`: for messages. Errors: kUnsupported (a newer schema), SQLite's.
Result<void> bring_up_to_date(sqlite::Database& database, const Path& path);

}  // namespace verger::controller::detail
