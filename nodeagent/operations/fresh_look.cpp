#include "nodeagent/operations/fresh_look.h"

namespace verger::agent {

net::awaitable<Result<const node::NodeInspection*>> fresh_look(LocalNode node) {
  const Error silent{Errc::kUnavailable, "the node is stopped, or does not answer"};
  auto* before = node.inspection();
  if (before == nullptr) {
    co_return silent;
  }
  VERGER_CO_RETURN_IF_ERROR(co_await before->refresh());
  const auto* inspection = node.inspection();  // it may have been stopped meanwhile
  if (inspection == nullptr) {
    co_return silent;
  }
  co_return inspection;
}

}  // namespace verger::agent
