#include "nodeagent/operations/operation.h"

namespace verger::agent {

net::awaitable<bool> Operation::cancel(LocalNode /*node*/, OperationRecord& /*record*/) {
  co_return false;
}

}  // namespace verger::agent
