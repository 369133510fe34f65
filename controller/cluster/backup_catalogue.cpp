#include "controller/cluster/backup_catalogue.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "controller/cluster/gather.h"

namespace verger::controller {
namespace {

using RepositoriesOfNode = Result<std::vector<api::BackupRepository>>;

/// A result that gather() can make room for before it is there.
struct NodeAnswer {
  std::optional<RepositoriesOfNode> repositories{};
};

net::awaitable<NodeAnswer> ask_node(std::shared_ptr<Peers> peers, std::string node) {
  co_return NodeAnswer{co_await peers->backup_repositories(std::move(node))};
}

std::string reason_of(const Error& error) {
  return error.code == Errc::kNotFound
             ? "its agent does not know backups: " + error.message + "; upgrade it"
             : error.message;
}

void add(KnownRepositories& to, const std::string& node, api::BackupRepository seen) {
  if (!seen.error.empty()) {
    to.gaps.push_back({.node = node, .repository = seen.name, .reason = seen.error});
    if (seen.id.empty()) {
      return;
    }
  }
  auto known = std::ranges::find_if(to.repositories, [&seen](const KnownRepository& each) {
    return each.id == seen.id && (!seen.id.empty() || each.name() == seen.name);
  });
  if (known == to.repositories.end()) {
    known = to.repositories.insert(known, {.id = seen.id});
  }
  known->at.push_back({.node = node, .seen = std::move(seen)});
}

/// What one repository holds.
struct Listed {
  std::string by{};  ///< empty: no agent answered
  std::vector<api::BackupGeneration> generations{};
  std::vector<CatalogueGap> gaps{};
};

net::awaitable<Listed> list(std::shared_ptr<Peers> peers, KnownRepository repository) {
  Listed out;
  for (const auto& [node, seen] : repository.at) {
    auto answer = co_await peers->backups(node, seen.name);
    if (answer) {
      out.by = node;
      out.generations = *std::move(answer);
      break;
    }
    out.gaps.push_back(
        {.node = node, .repository = seen.name, .reason = reason_of(answer.error())});
  }
  co_return out;
}

}  // namespace

bool KnownRepository::is_called(std::string_view name_or_id) const {
  return id == name_or_id ||
         std::ranges::any_of(at, [&](const auto& each) { return each.seen.name == name_or_id; });
}

std::vector<std::string> KnownRepositories::conflicts() const {
  std::map<std::string, std::map<std::string, std::string>> nodes_by_id_by_name;
  for (const auto& repository : repositories) {
    for (const auto& [node, seen] : repository.at) {
      auto& nodes = nodes_by_id_by_name[seen.name][repository.id];
      nodes += (nodes.empty() ? "" : ", ") + node;
    }
  }
  std::vector<std::string> out;
  for (const auto& [name, nodes_by_id] : nodes_by_id_by_name) {
    if (nodes_by_id.size() < 2) {
      continue;
    }
    std::string where;
    for (const auto& [id, nodes] : nodes_by_id) {
      where += fmt::format("{}{} at {}", where.empty() ? "" : ", ",
                           id.empty() ? "one without content" : id, nodes);
    }
    out.push_back(fmt::format(
        "{0} names different repositories: {1}. Make {0}.json of all agents name the same one",
        name, where));
  }
  return out;
}

net::awaitable<KnownRepositories> known_repositories(std::shared_ptr<Peers> peers) {
  std::vector<std::string> nodes;
  std::vector<net::awaitable<NodeAnswer>> questions;
  for (const auto& node : peers->cluster().nodes) {
    if (peers->has_agent(node.name)) {
      nodes.push_back(node.name);
      questions.push_back(ask_node(peers, node.name));
    }
  }
  const auto answers = co_await gather(std::move(questions));
  KnownRepositories out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& answer = answers[i].repositories;
    if (!answer || !*answer) {
      out.gaps.push_back(
          {.node = nodes[i], .reason = answer ? reason_of(answer->error()) : "it was not asked"});
      continue;
    }
    for (const auto& repository : **answer) {
      add(out, nodes[i], repository);
    }
  }
  std::ranges::sort(out.repositories, [](const auto& a, const auto& b) {
    return std::tie(a.name(), a.id) < std::tie(b.name(), b.id);
  });
  co_return out;
}

net::awaitable<KnownBackups> known_backups(std::shared_ptr<Peers> peers, std::string repository) {
  KnownBackups out;
  out.where = co_await known_repositories(peers);
  out.gaps = out.where.gaps;
  std::vector<KnownRepository> wanted;
  std::vector<net::awaitable<Listed>> questions;
  for (const auto& each : out.where.repositories) {
    if (!each.id.empty() && (repository.empty() || each.is_called(repository))) {
      wanted.push_back(each);
      questions.push_back(list(peers, each));
    }
  }
  auto lists = co_await gather(std::move(questions));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto& listed = lists[i];
    if (!listed.by.empty()) {
      out.listed_by.emplace(wanted[i].id, listed.by);
    }
    out.gaps.insert(out.gaps.end(), listed.gaps.begin(), listed.gaps.end());
    for (auto& generation : listed.generations) {
      out.backups.push_back({.repository_id = wanted[i].id,
                             .repository = wanted[i].name(),
                             .generation = std::move(generation)});
    }
  }
  std::ranges::sort(out.backups, [](const KnownBackup& a, const KnownBackup& b) {
    return std::tie(b.generation.finished_at, b.generation.id, b.repository_id) <
           std::tie(a.generation.finished_at, a.generation.id, a.repository_id);
  });
  co_return out;
}

}  // namespace verger::controller
