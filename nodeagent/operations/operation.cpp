#include "nodeagent/operations/operation.h"

namespace verger::agent {

net::awaitable<bool> Operation::cancel(LocalNode /*node*/, OperationRecord& /*record*/,
                                       bool /*keep*/) {
  co_return false;
}

std::optional<api::OperationProgress> Operation::progress(const LocalNode& /*node*/) const {
  return std::nullopt;
}

}  // namespace verger::agent
