#include "nodeagent/operations/backup/backup_routes.h"

#include "nodeagent/operations/answers.h"

namespace verger::agent {
namespace {

using Catalogue = BackupCatalogue::Self;

net::awaitable<http::Response> answer_repositories(Catalogue catalogue) {
  if (!catalogue) {
    co_return json_text_answer(200, api::to_text(std::vector<api::BackupRepository>()));
  }
  const auto all = co_await BackupCatalogue::repositories(std::move(catalogue));
  co_return all ? json_text_answer(200, api::to_text(*all)) : problem_of(all.error());
}

net::awaitable<http::Response> answer_generations(Catalogue catalogue,
                                                  http::RoutedRequest request) {
  auto name = request.target.parameter("repository");
  if (!name || !is_repository_name(*name)) {
    co_return problem(400, "bad_request", "repository must be the name of a repository");
  }
  if (!catalogue) {
    co_return problem(404, "not_found", no_repositories().message);
  }
  const auto all = co_await BackupCatalogue::generations(
      std::move(catalogue), std::string(*name),
      std::string(request.target.parameter("node").value_or("")));
  co_return all ? json_text_answer(200, api::to_text(*all)) : problem_of(all.error());
}

}  // namespace

void add_backup_routes(http::Router& router, BackupCatalogue::Self catalogue) {
  router.add("GET", "/agent/v1/backups/repositories", [catalogue](http::RoutedRequest /*request*/) {
    return answer_repositories(catalogue);
  });
  router.add("GET", "/agent/v1/backups",
             [catalogue = std::move(catalogue)](http::RoutedRequest request) {
               return answer_generations(catalogue, std::move(request));
             });
}

}  // namespace verger::agent
