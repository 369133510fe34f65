#include "engine/streams/transaction_reader.h"

namespace verger::streams::detail {

Result<void> visit_transaction(const log::TransactionLog& log, const log::Commit& commit,
                               const std::function<bool(const log::Prepare&)>& visit) {
  log::LogCursor cursor(log, commit.transaction_position, commit.position);
  for (;;) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      return {};
    }
    const auto* prepare = record->prepare();
    if (prepare == nullptr || prepare->transaction_position != commit.transaction_position) {
      continue;
    }
    if (carries_event(*prepare) && !visit(*prepare)) {
      return {};
    }
    if (prepare->has(log::prepare_flags::kTransactionEnd)) {
      return {};
    }
  }
}

}  // namespace verger::streams::detail
