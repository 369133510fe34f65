#include "controller/operations/growth/preflight.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

#include "controller/operations/restore/preflight.h"
#include "planner/growth/growth_policy.h"
#include "planner/restore/restore_policy.h"

namespace verger::controller::growth {
namespace {

/// What a restore onto the new node alone would ask.
PreflightContext of_restore(const PreflightContext& context) {
  const auto& wanted = planner::growth_of(context.policy);
  auto out = context;
  planner::RestorePolicy restore;
  restore.repository = wanted.repository;
  restore.generation = wanted.generation;
  for (const auto& joins : context.cluster.joining) {
    restore.nodes = joins.node.name;
    out.cluster.nodes = {joins.node};
  }
  out.policy.operation = std::move(restore);
  return out;
}

void judge_handshake(const std::string& node, const api::PeerHandshake& seen,
                     planner::Preflight& out) {
  const auto refuse = [&](const char* code, const std::string& why) {
    out.refusals.push_back(
        {code, node, why,
         "give the new node a certificate and roots of the same authorities as the others'; check "
         "the files with: verger cert lint"});
  };
  if (!seen.problem.empty()) {
    out.notes.push_back(
        fmt::format("{} could not connect to {}, so their certificates were not "
                    "compared: {}",
                    node, seen.name, seen.problem));
  } else if (!seen.trusted.value_or(false)) {
    refuse("certificates-not-trusted",
           fmt::format("it does not trust the certificate of {}: {}", seen.name, seen.not_trusted));
  } else if (seen.accepted && !*seen.accepted) {
    refuse("certificate-not-accepted",
           fmt::format("{} does not accept its certificate: {}", seen.name, seen.not_accepted));
  } else if (!seen.accepted) {
    out.notes.push_back(fmt::format("whether {} accepts the certificate of {} is not known: {}",
                                    seen.name, node, seen.not_accepted));
  }
}

/// Of members that answer, over TLS.
net::awaitable<void> compare_certificates(PreflightContext context, std::string node,
                                          planner::Preflight& out) {
  api::HandshakesRequest request;
  for (const auto& each : context.snapshot.nodes) {
    if (each.answered && each.url.starts_with("https:")) {
      request.peers.push_back({.name = each.name, .url = each.url});
    }
  }
  if (request.peers.empty()) {
    co_return;
  }
  const auto seen = co_await context.peers->certificate_handshakes(node, std::move(request));
  if (!seen) {
    out.notes.push_back(
        fmt::format("the certificates of {} were not compared with the others' before the start: "
                    "{}",
                    node, seen.error().message));
    co_return;
  }
  for (const auto& each : *seen) {
    judge_handshake(node, each, out);
  }
}

}  // namespace

net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings) {
  const auto joining = context.cluster.joining;
  if (joining.empty() || joining.front().node.agent_url.empty()) {
    co_return planner::Preflight{};
  }
  auto out = co_await cluster_restore::preflight(of_restore(context), std::move(settings));
  const auto node = joining.front().node.name;
  const auto facts = co_await context.peers->facts(node);
  if (!facts) {
    co_return out;
  }
  if (facts->database_id.empty() && facts->chunk_file_count > 0) {
    out.refusals.push_back(
        {"database-not-known", node,
         fmt::format("{} has {} chunk files, and its agent cannot tell of which database: {}",
                     facts->database_directory.path, facts->chunk_file_count, facts->files_problem),
         "move those files away if they are not needed, or correct Db in the agent's file"});
  }
  co_await compare_certificates(std::move(context), node, out);
  co_return out;
}

}  // namespace verger::controller::growth
