#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/routes.h"
#include "controller/cluster/certificate_end.h"
#include "controller/cluster/peers.h"
#include "engine/base/digest.h"

// /clusters/{name}/certificates: what was seen of the certificates of a cluster's nodes and agents;
// and the files for those that are to come.
namespace verger::controller {
namespace {

using nlohmann::json;
using planner::CertificateSeen;
using planner::NodeSnapshot;

json view_of(const CertificateSeen& seen, Ticks now) {
  return {{"kind", planner::to_string(seen.kind)},
          {"subject", seen.subject},
          {"serial", seen.serial},
          {"fingerprint", seen.fingerprint},
          {"not_before", format_ticks(seen.not_before)},
          {"not_after", format_ticks(seen.not_after)},
          {"days_left", days_left(seen, now)}};
}

json views_of(const std::vector<CertificateSeen>& chain, Ticks now) {
  auto out = json::array();
  for (const auto& each : chain) {
    out.push_back(view_of(each, now));
  }
  return out;
}

/// What is not seen of a node's own certificate, and why.
void add_unseen(const NodeSnapshot& node, json& into) {
  const auto* served = node.served_certificate();
  if (!node.url.starts_with("https")) {
    into.push_back("it has no TLS: " + node.url);
    return;
  }
  if (served == nullptr) {
    into.push_back(fmt::format(
        "what it serves: {}",
        node.problem.empty() ? "it shows a new connection no certificate" : node.problem));
  } else if (served->chain.empty() || served->chain.back().kind != CertificateSeen::Kind::kRoot) {
    into.push_back(
        "its root: none of the roots that vergerd trusts for this cluster issued what it serves");
  }
  if (!node.has_agent()) {
    into.push_back("its files, and the roots that it trusts: it has no agent");
  } else if (!node.certificate_files) {
    into.push_back(
        fmt::format("its files, and the roots that it trusts: {}",
                    node.agent_problem.empty() ? "its agent does not tell" : node.agent_problem));
  } else {
    if (!node.certificate_files->problem.empty()) {
      into.push_back("its files: " + node.certificate_files->problem);
    }
    for (const auto& problem : node.certificate_files->user_problems) {
      into.push_back("certificates of users: " + problem);
    }
  }
}

json view_of(const NodeSnapshot& node, Ticks now) {
  auto files = json::array();
  if (node.certificate_files) {
    files = views_of(node.certificate_files->chain, now);
    for (auto& root : views_of(node.certificate_files->roots, now)) {
      files.push_back(std::move(root));
    }
  }
  auto users = json::array();
  for (const auto& user : node.certificate_files ? node.certificate_files->users
                                                 : std::vector<planner::UserCertificateSeen>()) {
    auto shown = view_of(user.certificate, now);
    shown["path"] = user.path;
    users.push_back(std::move(shown));
  }
  auto served = json::array();
  auto agent = json::array();
  for (const auto& each : node.certificates) {
    (each.of == "node" ? served : agent) = views_of(each.chain, now);
  }
  auto not_known = json::array();
  add_unseen(node, not_known);
  const auto differs = node.file_differs_from_served();
  return {{"node", node.name},
          {"url", node.url},
          {"served", std::move(served)},
          {"files", std::move(files)},
          {"agent", std::move(agent)},
          {"users", std::move(users)},
          {"file_differs", differs ? json(*differs) : json()},
          {"not_known", std::move(not_known)}};
}

net::awaitable<Result<http::Response>> get_certificates(const ApiParts& parts, Call call) {
  const auto name = call.named("name");
  VERGER_CO_TRY(const auto config, parts.registry.find(name));
  parts.observer.forget_certificates(config);
  const auto snapshot = co_await parts.observer.take(config);
  auto nodes = json::array();
  json first;
  Ticks ends;
  for (const auto& node : snapshot.nodes) {
    nodes.push_back(view_of(node, snapshot.taken_at));
    for (const auto& end : certificate_ends(node)) {
      if (first.is_null() || end.not_after < ends) {
        ends = end.not_after;
        first = {{"node", node.name},
                 {"of", end.of},
                 {"kind", planner::to_string(end.kind)},
                 {"not_after", format_ticks(end.not_after)}};
      }
    }
  }
  co_return json_answer(200, {{"cluster", name},
                              {"taken_at", format_ticks(snapshot.taken_at)},
                              {"first_end", std::move(first)},
                              {"nodes", std::move(nodes)}});
}

/// As large as an agent's store takes one.
constexpr std::size_t kLargestFile = 1U << 20U;

/// A file for the store of a node's agent: passed on at once. It may be a key: it is neither kept
/// nor logged, nor in any message.
net::awaitable<Result<http::Response>> put_file(const ApiParts& parts, Call call) {
  const auto cluster = call.named("name");
  const auto node = call.named("node");
  const auto sha256 = call.named("sha256");
  VERGER_CO_TRY(const auto config, parts.registry.find(cluster));
  const auto* found = config.find(node);
  if (found == nullptr) {
    co_return problem(404, "not_found",
                      fmt::format("cluster {} has no node {}; see: verger cluster show {}", cluster,
                                  node, cluster));
  }
  if (found->agent_url.empty()) {
    co_return problem(
        422, "no_agent",
        fmt::format("{} of {} has no agent, which would take the file", node, cluster));
  }
  if (call.body().empty() || call.body().size() > kLargestFile) {
    co_return problem(413, "bad_request",
                      fmt::format("the body is the file, of 1 to {} bytes; it has {}", kLargestFile,
                                  call.body().size()));
  }
  if (const auto actual = to_hex(verger::sha256(as_bytes(call.body()))); actual != sha256) {
    co_return problem(
        422, "bad_request",
        fmt::format("the SHA-256 of what arrived is {}, and the path says {}", actual, sha256));
  }
  auto stored = co_await Peers(parts.network, config)
                    .put_file(node, std::move(call.request.body), parts.epoch.value());
  if (!stored) {
    co_return problem_of(stored.error().within(fmt::format("the agent of {}", node)));
  }
  co_return json_answer(200, {{"node", node},
                              {"sha256", stored->sha256},
                              {"bytes", stored->bytes},
                              {"stored_at", stored->stored_at}});
}

}  // namespace

std::span<const Route> certificate_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/clusters/{name}/certificates", kViewer, "getCertificates",
       "The certificates of a cluster's nodes and agents, as served and on disk", 200, "",
       "NodeCertificates", "", get_certificates},
      {"PUT", "/clusters/{name}/nodes/{node}/files/{sha256}", kOperator, "putFile",
       "Bring a file to the store of a node's agent, under the SHA-256 of its content", 200,
       kFileRequest, "StoredFile", "", put_file},
  };
  return kRoutes;
}

}  // namespace verger::controller
