#include "controller/cluster/registry.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/cluster/cluster_events.h"
#include "controller/cluster/names.h"
#include "controller/journal/append_and_fold.h"
#include "nodeagent/http/client.h"

namespace verger::controller {
namespace {

constexpr std::string_view kClusterStreams = "cluster/";

std::string stream_of_cluster(std::string_view name) {
  return fmt::format("{}{}", kClusterStreams, name);
}

EpochMark epoch_mark_of(const nlohmann::json& json) {
  return {json.value("number", -1), json.value("id", std::string())};
}

nlohmann::json json_of(const EpochMark& epoch) {
  return {{"number", epoch.number}, {"id", epoch.id}};
}

/// A text that journals of version 0.1 have under a name in camelCase.
std::string older_name(const nlohmann::json& object, const char* name, const char* older) {
  return object.value(name, object.value(older, std::string()));
}

}  // namespace

const ClusterNode* ClusterConfig::find(std::string_view node) const {
  if (const auto found = std::ranges::find(nodes, node, &ClusterNode::name); found != nodes.end()) {
    return &*found;
  }
  const auto joins = std::ranges::find(
      joining, node, [](const JoiningMember& each) -> const auto& { return each.node.name; });
  return joins == joining.end() ? nullptr : &joins->node;
}

std::string to_json_text(const ClusterConfig& config) {
  auto nodes = nlohmann::json::array();
  for (const auto& node : config.nodes) {
    nodes.push_back({{"name", node.name}, {"url", node.url}, {"agent_url", node.agent_url}});
  }
  nlohmann::json out{{"name", config.name},
                     {"nodes", std::move(nodes)},
                     {"credentials", config.credentials},
                     {"trusted_roots", config.trusted_roots},
                     {"identity", config.identity}};
  if (!config.labels.empty()) {
    out["labels"] = config.labels;
  }
  if (config.epoch.number >= 0) {
    out["epoch"] = json_of(config.epoch);
  }
  return out.dump();
}

Result<ClusterConfig> parse_cluster_config(std::string_view json) {
  try {
    const auto value = nlohmann::json::parse(json);
    ClusterConfig out;
    out.name = value.at("name").get<std::string>();
    for (const auto& node : value.at("nodes")) {
      out.nodes.push_back(ClusterNode{.name = node.value("name", std::string()),
                                      .url = node.at("url").get<std::string>(),
                                      .agent_url = older_name(node, "agent_url", "agentUrl")});
    }
    out.credentials = value.value("credentials", std::string());
    out.trusted_roots = older_name(value, "trusted_roots", "trustedRoots");
    out.identity = value.value("identity", std::string());
    out.labels = value.value("labels", std::map<std::string, std::string>());
    if (value.contains("epoch")) {
      out.epoch = epoch_mark_of(value["epoch"]);
    }
    return out;
  } catch (const nlohmann::json::exception& error) {
    return Error{Errc::kInvalidArgument, fmt::format("cluster: {}", error.what())};
  }
}

Result<void> check_fencing(const ClusterConfig& config) {
  std::vector<std::string_view> blind;
  for (const auto& node : config.nodes) {
    if (node.agent_url.empty()) {
      blind.emplace_back(node.name);
    }
  }
  if (blind.empty()) {
    return {};
  }
  return Error{Errc::kUnsupported,
               fmt::format("cluster {}: no agent on {}. This vergerd shares its journal with "
                           "another one, and nothing but agents keeps the older of two from acting "
                           "on a node. Start a verger-agent on every node and register the cluster "
                           "with an --agent URL for each, or give it to a vergerd without "
                           "--journal-etcd",
                           config.name, fmt::join(blind, ", "))};
}

Result<void> Registry::load() {
  entries_.clear();
  VERGER_TRY(const auto streams, journal_.streams(kClusterStreams));
  for (const auto& stream : streams) {
    VERGER_TRY(const auto events, journal_.read(stream));
    for (const auto& event : events) {
      auto applied = apply(event);
      if (!applied) {
        return applied.error().within(
            fmt::format("journal, event {} of {}", event.sequence.value(), stream));
      }
    }
  }
  return {};
}

Result<void> Registry::apply(const JournalEvent& event) {
  const auto name = event.stream.substr(kClusterStreams.size());
  auto& entry = entries_[name];
  entry.revision = event.revision;
  if (event.type == events::kClusterAdded) {
    VERGER_TRY(entry.config, parse_cluster_config(event.data));
    return {};
  }
  if (event.type == events::kClusterRemoved) {
    entry.config.reset();
    return {};
  }
  if (!entry.config) {
    return Error{Errc::kCorruption, fmt::format("{} of a cluster that is not there", event.type)};
  }
  const auto data = nlohmann::json::parse(event.data, nullptr, false);
  if (event.type == events::kClusterUpdated) {
    VERGER_TRY(auto changed, parse_cluster_config(event.data));
    changed.paused = entry.config->paused;
    changed.pause_reason = entry.config->pause_reason;
    changed.pause_until = entry.config->pause_until;
    entry.config = std::move(changed);
  } else if (event.type == events::kClusterPaused) {
    entry.config->paused = true;
    entry.config->pause_reason = data.value("reason", std::string());
    entry.config->pause_until.reset();
    if (data.contains("until")) {
      VERGER_TRY(entry.config->pause_until, parse_ticks(data.value("until", std::string())));
    }
  } else if (event.type == events::kClusterResumed) {
    entry.config->paused = false;
    entry.config->pause_reason.clear();
    entry.config->pause_until.reset();
  } else if (event.type == events::kClusterIdentified) {
    if (data.contains("epoch")) {
      entry.config->epoch = epoch_mark_of(data["epoch"]);
    } else {
      entry.config->identity = data.value("identity", std::string());
    }
  } else {
    return Error{Errc::kCorruption, fmt::format("unknown event {}", event.type)};
  }
  return {};
}

Result<void> Registry::append(std::string_view name, NewEvent event) {
  const auto found = entries_.find(name);
  return append_and_fold(journal_, stream_of_cluster(name), epoch_,
                         found == entries_.end() ? Revision(0) : found->second.revision,
                         {std::move(event)},
                         [this](const auto& written) { return apply(written); });
}

Result<ClusterConfig> Registry::check(ClusterConfig config) const {
  VERGER_RETURN_IF_ERROR(check_name("cluster name", config.name));
  if (find(config.name)) {
    return Error{
        Errc::kExists,
        fmt::format(
            "there is a cluster {0} already; change it with `verger cluster update {0}`, or "
            "choose another name",
            config.name)};
  }
  VERGER_TRY(config, check_members(std::move(config)));
  config.paused = false;
  return config;
}

Result<ClusterConfig> Registry::check_update(ClusterConfig config) const {
  VERGER_RETURN_IF_ERROR(find(config.name));
  return check_members(std::move(config));
}

Result<ClusterConfig> Registry::check_members(ClusterConfig config) const {
  if (config.nodes.empty()) {
    return Error{Errc::kInvalidArgument, fmt::format("cluster {}: it has no nodes", config.name)};
  }
  std::set<std::string> names;
  std::set<std::string> urls;
  for (auto& node : config.nodes) {
    auto url = http::parse_endpoint(node.url);
    if (!url) {
      return url.error().within(fmt::format("cluster {}, node", config.name));
    }
    node.url = url->url();
    if (node.name.empty()) {
      node.name = fmt::format("{}:{}", url->host, url->port);
    }
    VERGER_RETURN_IF_ERROR(check_name("node name", node.name));
    if (!node.agent_url.empty()) {
      auto agent = http::parse_endpoint(node.agent_url, http::kAgentPort);
      if (!agent) {
        return agent.error().within(fmt::format("cluster {}, agent of {}", config.name, node.name));
      }
      node.agent_url = agent->url();
    }
    if (!names.insert(node.name).second) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("cluster {}: two nodes are called {}", config.name, node.name)};
    }
    for (const auto& each : {node.url, node.agent_url}) {
      if (!each.empty() && !urls.insert(each).second) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("cluster {}: {} is there twice", config.name, each)};
      }
    }
  }
  for (const auto& other : list()) {
    for (const auto& node : other.nodes) {
      if (other.name == config.name) {
        continue;
      }
      for (const auto& each : {node.url, node.agent_url}) {
        if (urls.contains(each)) {
          return Error{Errc::kConflict, fmt::format("cluster {}: {} belongs to the cluster {}",
                                                    config.name, each, other.name)};
        }
      }
    }
  }
  return config;
}

Result<void> Registry::add(ClusterConfig config) {
  VERGER_TRY(const auto checked, check(std::move(config)));
  return append(checked.name, {std::string(events::kClusterAdded), to_json_text(checked)});
}

Result<void> Registry::update(ClusterConfig config) {
  VERGER_TRY(const auto checked, check_update(std::move(config)));
  VERGER_TRY(const auto before, find(checked.name));
  if (checked == before) {
    return {};
  }
  return append(checked.name, {std::string(events::kClusterUpdated), to_json_text(checked)});
}

Result<void> Registry::change_members(std::string_view name, const std::vector<ClusterNode>& joined,
                                      const std::vector<std::string>& left) {
  VERGER_TRY(auto config, find(name));
  std::erase_if(config.nodes, [&left](const ClusterNode& node) {
    return std::ranges::find(left, node.name) != left.end();
  });
  for (const auto& node : joined) {
    if (config.find(node.name) == nullptr) {
      config.nodes.push_back(node);
    }
  }
  return update(std::move(config));
}

Result<void> Registry::remove(std::string_view name) {
  VERGER_RETURN_IF_ERROR(find(name));
  return append(name, {std::string(events::kClusterRemoved), "{}"});
}

Result<void> Registry::set_paused(std::string_view name, bool paused, std::string reason,
                                  std::optional<Ticks> until) {
  VERGER_TRY(const auto config, find(name));
  if (config.paused == paused && (!paused || config.pause_until == until)) {
    return {};
  }
  if (!paused) {
    return append(name, {std::string(events::kClusterResumed), "{}"});
  }
  nlohmann::json data{{"reason", std::move(reason)}};
  if (until) {
    data["until"] = format_ticks(*until);
  }
  return append(name, {std::string(events::kClusterPaused), data.dump()});
}

Result<void> Registry::set_identity(std::string_view name, std::string identity) {
  VERGER_TRY(const auto config, find(name));
  if (config.identity == identity) {
    return {};
  }
  return append(name, {std::string(events::kClusterIdentified),
                       nlohmann::json{{"identity", std::move(identity)}}.dump()});
}

Result<void> Registry::set_epoch(std::string_view name, EpochMark epoch) {
  VERGER_TRY(const auto config, find(name));
  if (config.epoch == epoch) {
    return {};
  }
  return append(name, {std::string(events::kClusterIdentified),
                       nlohmann::json{{"epoch", json_of(epoch)}}.dump()});
}

std::vector<ClusterConfig> Registry::list() const {
  std::vector<ClusterConfig> out;
  for (const auto& [name, entry] : entries_) {
    if (entry.config) {
      out.push_back(*entry.config);
    }
  }
  return out;
}

Result<ClusterConfig> Registry::find(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.config) {
    return *found->second.config;
  }
  std::vector<std::string> names;
  for (const auto& config : list()) {
    names.push_back(config.name);
  }
  return Error{
      Errc::kNotFound,
      names.empty()
          ? fmt::format("there is no cluster {}; none is registered, see `verger cluster "
                        "add --help`",
                        name)
          : fmt::format("there is no cluster {}; there are: {}", name, fmt::join(names, ", "))};
}

}  // namespace verger::controller
