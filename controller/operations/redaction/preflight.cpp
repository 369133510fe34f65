#include "controller/operations/redaction/preflight.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/backup_catalogue.h"
#include "planner/redaction/redaction_policy.h"

namespace verger::controller::redactions {

net::awaitable<planner::Preflight> preflight(
    PreflightContext context, std::shared_ptr<const OperationSettings> /*settings*/) {
  const auto wanted = planner::redaction_of(context.policy).expire_backups;
  planner::Preflight out;
  if (wanted.empty()) {
    co_return out;
  }
  const auto known = co_await known_repositories(context.peers);
  planner::Json::Object repositories;
  for (const auto& repository : known.repositories) {
    for (const auto& [node, seen] : repository.at) {
      if (seen.name == wanted && seen.error.empty()) {
        repositories.insert_or_assign(node, planner::Json(repository.id));
      }
    }
  }
  if (repositories.empty()) {
    auto why = fmt::format("no agent can use a repository \"{}\", where backups are to be deleted",
                           wanted);
    for (const auto& gap : known.gaps) {
      if (gap.repository.empty() || gap.repository == wanted) {
        why += fmt::format("; {}: {}", gap.node, gap.reason);
      }
    }
    out.refusals.push_back({.code = "no-repository",
                            .node = {},
                            .message = std::move(why),
                            .hint = "verger backup repositories CLUSTER shows what agents have"});
  }
  out.facts = planner::Json::Object{{"repositories", std::move(repositories)}};
  co_return out;
}

}  // namespace verger::controller::redactions
