// /info/options: node-interface.md §1.10 and §5.3.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kOptionsFormats = {Format::kJson, Format::kXml, Format::kText};

EffectiveOption option(std::string name, std::string group, std::string value, std::string type,
                       std::string description) {
  return {.name = std::move(name),
          .description = std::move(description),
          .group = std::move(group),
          .value = std::move(value),
          .source = "<DEFAULT>",
          .type = std::move(type)};
}

/// For a node that was not started by a program with options.
std::vector<EffectiveOption> known_options(const NodeOptions& options) {
  const auto truth = [](bool value) { return std::string(value ? "True" : "False"); };
  return {option("Insecure", "ApplicationOptions", truth(options.insecure), "boolean",
                 "Disable Authentication, Authorization and TLS on all TCP/HTTP interfaces."),
          option("DefaultAdminPassword", "DefaultUserOptions", "********", "string",
                 "Admin Default password"),
          option("DefaultOpsPassword", "DefaultUserOptions", "********", "string",
                 "Ops Default password"),
          option("ClusterSize", "ClusterOptions", std::to_string(options.cluster_size), "integer",
                 "The number of nodes in the cluster."),
          option("NodePriority", "ClusterOptions", std::to_string(options.node_priority), "integer",
                 "The node priority used during leader election."),
          option("ReadOnlyReplica", "ClusterOptions", truth(options.read_only_replica), "boolean",
                 "Sets this node as a read only replica that does not vote."),
          option("Db", "DatabaseOptions", options.database.string(), "string",
                 "The path the db should be loaded/saved to."),
          option("Index", "DatabaseOptions", options.index.string(), "string",
                 "The path the index should be loaded/saved to."),
          option("ChunkSize", "DatabaseOptions", std::to_string(options.chunk_size), "integer", ""),
          option("EnableAtomPubOverHttp", "InterfaceOptions", truth(options.enable_atom_pub),
                 "boolean", "Enable AtomPub over HTTP Interface.")};
}

net::awaitable<Response> info_options(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kOptionsFormats);
  if (!format) {
    co_return format.error();
  }
  auto list = ordered_json::array();
  const auto& given = core->options.effective;
  for (const auto& one : given.empty() ? known_options(core->options) : given) {
    ordered_json schema = {{"type", one.type}};
    if (!one.unit.empty()) {
      schema["x-unit"] = one.unit;
    }
    list.push_back({{"name", one.name},
                    {"description", one.description},
                    {"group", one.group},
                    {"value", one.value},
                    {"configurationSource", one.source},
                    {"deprecationMessage", one.deprecation.empty() ? ordered_json(nullptr)
                                                                   : ordered_json(one.deprecation)},
                    {"schema", std::move(schema)}});
  }
  co_return formatted(*format, indented(list), methods::kGet);
}

}  // namespace

void add_options_route(http::Router& router, const std::shared_ptr<Core>& core) {
  add_route(router, core, "GET", "/info/options",
            {.need = Need::kOperator, .formats = kOptionsFormats}, info_options);
}

}  // namespace verger::node
