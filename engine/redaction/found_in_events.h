#pragma once

#include <vector>

#include "engine/log/transaction_log.h"
#include "engine/redaction/plaintext_search_job.h"

namespace verger::redaction {

/// Says of what was found in live chunk files which event's record it lies in, for events that are
/// not redacted. Reads the chunk files in which something was found. Errors: those of reading.
Result<void> name_events(const log::TransactionLog& log, std::vector<SearchedFile>& files);

}  // namespace verger::redaction
