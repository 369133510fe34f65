#pragma once

#include "controller/journal/journal.h"

namespace verger::controller {

/// As open_sqlite_journal, and the next epoch is also above `epoch_above`: for the start after a
/// journal was lost, where agents know later epochs than it does.
Result<std::unique_ptr<Journal>> open_sqlite_journal_above(FileSystem& files, const Path& path,
                                                           Clock& clock,
                                                           ControllerEpoch epoch_above);

}  // namespace verger::controller
