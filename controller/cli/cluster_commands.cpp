#include <algorithm>
#include <fstream>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;

std::string point_text(const json& node, const char* name) {
  const auto point = node.value(name, json());
  return point.is_object()
             ? fmt::format("{} @ {}", number_of(point, "number"), number_of(point, "position"))
             : "-";
}

/// "paused until 2026-11-22T04:00:00Z: why"; empty: it is not.
std::string pause_text(const json& cluster) {
  if (!cluster.value("paused", false)) {
    return {};
  }
  const auto until = text_of(cluster, "pause_until");
  const auto reason = text_of(cluster, "pause_reason");
  return fmt::format("paused{}{}{}", until.empty() ? "" : " until " + to_the_second(until),
                     reason.empty() ? "" : ": ", reason);
}

void print_cluster(const CliContext& context, const json& cluster) {
  const auto snapshot = cluster.value("snapshot", json());
  context.out << fmt::format(
      "cluster {}  leader {}  seen {}\n", text_of(cluster, "name"),
      text_of(snapshot, "leader").empty() ? "none seen" : text_of(snapshot, "leader"),
      time_of(snapshot, "taken_at"));
  if (const auto pause = pause_text(cluster); !pause.empty()) {
    context.out << fmt::format(
        "{}; nothing new starts on it; to end the pause: verger cluster resume {}\n", pause,
        text_of(cluster, "name"));
  }
  Table table({{"node"},
               {"role"},
               {"log position", Table::Align::kRight},
               {"lag", Table::Align::kRight},
               {"on disk", Table::Align::kRight, true},
               {"disk free", Table::Align::kRight, true},
               {"chunks", Table::Align::kRight, true},
               {"events", Table::Align::kRight, true},
               {"last point", Table::Align::kLeft, true},
               {"now", Table::Align::kWrap}});
  std::string problems;  // whole, below the table: its columns would cut them
  for (const auto& node : list_of(snapshot, "nodes")) {
    const auto running = node.value("running_scavenge", json());
    std::string now;
    if (const auto problem = text_of(node, "problem"); !problem.empty()) {
      now = "see below";
      problems += fmt::format("{}: {}\n", text_of(node, "name"), problem);
    } else if (running.is_object()) {
      const auto phase = text_of(running, "phase");  // only an agent tells it
      now = phase.empty() ? "scavenge" : "scavenge: " + phase;
    } else if (const auto point = node.value("unfinished_point", json()); point.is_object()) {
      now = fmt::format("scavenge to point {} is unfinished", number_of(point, "number"));
    }
    table.add({text_of(node, "name"), text_of(node, "state"),
               optional_number(node, "writer_checkpoint"), optional_bytes(node, "lag_bytes"),
               optional_bytes(node, "database_bytes"), optional_bytes(node, "disk_free_bytes"),
               optional_number(node, "chunk_files"), optional_number(node, "event_count"),
               point_text(node, "last_finished_point"), now.empty() ? "-" : now});
  }
  context.print(table);
  context.out << problems;
  for (const auto& warning : list_of(snapshot, "warnings")) {
    context.out << fmt::format("warning: {}\n", warning.get<std::string>());
  }
  for (const auto& stranger : list_of(snapshot, "strangers")) {
    context.out << fmt::format("{} is a member of the cluster that is not registered\n",
                               stranger.get<std::string>());
  }
}

/// NAME, URLs and credentials, or the same as a JSON file.
struct AddOptions {
  std::string name_or_file;
  std::vector<std::string> nodes;
  std::vector<std::string> agents;
  std::string credentials;
  std::string trusted_roots;
  std::vector<std::string> labels;
};

/// "n1=http://127.0.0.1:2111", or the URL alone: then the controller names the node.
json named_url(const std::string& text) {
  const auto equals = text.find('=');
  const auto scheme = text.find("://");
  if (equals == std::string::npos || (scheme != std::string::npos && scheme < equals)) {
    return {{"node", text}};
  }
  return {{"name", text.substr(0, equals)}, {"node", text.substr(equals + 1)}};
}

/// Agents with a name belong to the node of that name, the others to the nodes in their order. Why
/// they do not fit; empty: they do.
std::string add_agents(const std::vector<std::string>& agents, json& nodes) {
  if (!agents.empty() && agents.size() != nodes.size()) {
    return fmt::format("{} --node but {} --agent: give one agent for each node, or none at all",
                       nodes.size(), agents.size());
  }
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const auto agent = named_url(agents[i]);
    auto* node = &nodes[i];
    if (const auto name = text_of(agent, "name"); !name.empty()) {
      const auto found = std::ranges::find_if(
          nodes, [&name](const json& each) { return text_of(each, "name") == name; });
      if (found == nodes.end()) {
        return fmt::format("--agent {}: there is no --node {}=URL", agents[i], name);
      }
      node = &*found;
    }
    if (node->contains("agent")) {
      return fmt::format("--agent {}: its node has an agent already", agents[i]);
    }
    (*node)["agent"] = agent.at("node");
  }
  return {};
}

std::expected<json, std::string> cluster_body(const AddOptions& options) {
  if (options.nodes.empty()) {
    std::ifstream file(options.name_or_file);
    if (!file) {
      return std::unexpected(
          fmt::format("{}: no such file; give a JSON file, or a name with --node URL for each node",
                      options.name_or_file));
    }
    auto body = json::parse(file, nullptr, false);
    if (!body.is_object()) {
      return std::unexpected(fmt::format("{}: not a JSON object", options.name_or_file));
    }
    return body;
  }
  auto nodes = json::array();
  for (const auto& node : options.nodes) {
    nodes.push_back(named_url(node));
  }
  if (const auto wrong = add_agents(options.agents, nodes); !wrong.empty()) {
    return std::unexpected(wrong);
  }
  auto labels = json::object();
  for (const auto& label : options.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return std::unexpected(
          fmt::format("--label {}: it takes KEY=VALUE, such as tier=gold", label));
    }
    labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return json{{"name", options.name_or_file},
              {"nodes", std::move(nodes)},
              {"credentials", options.credentials},
              {"trusted_roots", options.trusted_roots},
              {"labels", std::move(labels)}};
}

/// What would stand in the way of a plan is better known at once.
void warn_of_problems(const CliContext& context, const json& snapshot) {
  for (const auto& node : list_of(snapshot, "nodes")) {
    if (const auto problem = text_of(node, "problem"); !problem.empty()) {
      context.err << fmt::format("verger: warning: {}: {}\n", text_of(node, "name"), problem);
    }
  }
  for (const auto& warning : list_of(snapshot, "warnings")) {
    context.err << fmt::format("verger: warning: {}\n", warning.get<std::string>());
  }
  for (const auto& stranger : list_of(snapshot, "strangers")) {
    context.err << fmt::format(
        "verger: warning: {} is a member of the cluster that is not registered\n",
        stranger.get<std::string>());
  }
}

int add_cluster(const CliContext& context, const AddOptions& options) {
  const auto body = cluster_body(options);
  if (!body) {
    context.err << "verger: " << body.error() << '\n';
    return kUsage;
  }
  const auto cluster = context.api.post("/clusters", *body);
  if (!cluster) {
    return context.fail(cluster.error());
  }
  if (context.json) {
    context.out << cluster->dump() << '\n';
  } else {
    context.out << fmt::format(
        "cluster {} is registered with {}\n", text_of(*cluster, "name"),
        counted(static_cast<std::int64_t>(list_of(*cluster, "nodes").size()), "node"));
  }
  warn_of_problems(context, cluster->value("snapshot", json::object()));
  return kDone;
}

int list_clusters(const CliContext& context) {
  // A look at every cluster: fewer at once, so that no page takes long.
  const auto answer = context.api.get_all("/clusters?look=true&limit=50", "clusters");
  if (!answer) {
    return context.fail(answer.error());
  }
  const auto clusters = list_of(*answer, "clusters");
  if (context.json) {
    for (const auto& cluster : clusters) {
      context.out << cluster.dump() << '\n';
    }
    return kDone;
  }
  if (clusters.empty()) {
    context.out << "no cluster is registered; register one with: verger cluster discover URL\n";
    return kDone;
  }
  Table table({{"cluster"},
               {"leader"},
               {"nodes"},
               {"run", Table::Align::kId},
               {"state"},
               {"last success"},
               {"pause", Table::Align::kWrap, true},
               {"labels", Table::Align::kWrap, true}});
  for (const auto& cluster : clusters) {
    const auto look = cluster.value("look", json::object());
    const auto run = cluster.value("active_run", json());
    const auto last = cluster.value("last_success", json());
    const auto down = number_of(look, "nodes_down");
    std::string labels;
    const auto of_cluster = cluster.value("labels", json::object());
    for (const auto& [label, value] : of_cluster.items()) {
      labels += fmt::format("{}{}={}", labels.empty() ? "" : " ", label,
                            value.is_string() ? value.get<std::string>() : value.dump());
    }
    const auto leader = text_of(look, "leader");
    table.add({text_of(cluster, "name"), leader.empty() ? "none seen" : leader,
               fmt::format("{} up{}", number_of(look, "nodes_up"),
                           down == 0 ? "" : fmt::format(", {} down", down)),
               run.is_object() ? text_of(run, "id") : "-",
               run.is_object() ? text_of(run, "state") : "-", time_of(last, "finished_at"),
               pause_text(cluster), labels});
  }
  context.print(table);
  return kDone;
}

int change_cluster(const CliContext& context, const std::string& name, const json& body) {
  const auto cluster = context.api.patch("/clusters/" + http::percent_encode(name), body);
  if (!cluster) {
    return context.fail(cluster.error());
  }
  if (context.json) {
    context.out << cluster->dump() << '\n';
  } else {
    context.out << fmt::format("cluster {} is changed\n", name);
  }
  warn_of_problems(context, cluster->value("snapshot", json::object()));
  return kDone;
}

/// What the CLI's options change; an empty list or text changes nothing.
int update_cluster(const CliContext& context, const AddOptions& options) {
  auto body = json::object();
  if (!options.nodes.empty()) {
    const auto given = cluster_body(options);
    if (!given) {
      context.err << "verger: " << given.error() << '\n';
      return kUsage;
    }
    body["nodes"] = given->at("nodes");
  }
  if (!options.credentials.empty()) {
    body["credentials"] = options.credentials;
  }
  if (!options.trusted_roots.empty()) {
    body["trusted_roots"] = options.trusted_roots;
  }
  if (body.empty()) {
    context.err << "verger: nothing to change: give --node (with --agent) for each node, "
                   "--credentials or --ca; labels are changed with verger cluster label\n";
    return kUsage;
  }
  return change_cluster(context, options.name_or_file, body);
}

int label_cluster(const CliContext& context, const std::string& name,
                  const std::vector<std::string>& changes) {
  auto labels = json::object();
  auto unset = json::array();
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals != std::string::npos && equals > 0) {
      labels[change.substr(0, equals)] = change.substr(equals + 1);
    } else if (equals == std::string::npos && change.size() > 1 && change.ends_with('-')) {
      unset.push_back(change.substr(0, change.size() - 1));
    } else {
      context.err << fmt::format("verger: \"{}\": it takes KEY=VALUE, or KEY- to remove a label\n",
                                 change);
      return kUsage;
    }
  }
  return change_cluster(context, name, {{"labels", labels}, {"remove_labels", unset}});
}

int show_cluster(const CliContext& context, const std::string& name) {
  const auto cluster = context.api.get("/clusters/" + http::percent_encode(name));
  if (!cluster) {
    return context.fail(cluster.error());
  }
  if (context.json) {
    context.out << cluster->dump() << '\n';
  } else {
    print_cluster(context, *cluster);
  }
  return kDone;
}

int remove_cluster(const CliContext& context, const std::string& name) {
  const auto answer = context.api.remove("/clusters/" + http::percent_encode(name));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << json{{"name", name}, {"removed", true}}.dump() << '\n';
  } else {
    context.out << fmt::format("cluster {} is no longer registered; its nodes were not touched\n",
                               name);
  }
  return kDone;
}

}  // namespace

void add_cluster_commands(CLI::App& app, Command& chosen) {
  auto* cluster = app.add_subcommand("cluster", "Clusters the controller looks after");
  cluster->require_subcommand(1);

  auto options = std::make_shared<AddOptions>();
  auto* add = cluster->add_subcommand("add", "Register a cluster");
  add->footer(
      "Example: verger cluster add orders --node https://n1.example.com:2113 \\\n"
      "           --node https://n2.example.com:2113 --node https://n3.example.com:2113 \\\n"
      "           --credentials orders --ca orders-ca.crt");
  add->add_option("NAME|FILE", options->name_or_file,
                  "Name of the cluster, or a JSON file with name, nodes and credentials")
      ->required();
  add->add_option("--node", options->nodes, "URL of a node, or NAME=URL; once for each node");
  add->add_option("--agent", options->agents,
                  "URL of the agent beside it in the same order, or NAME=URL");
  add->add_option("--credentials", options->credentials,
                  "Name of a file in vergerd's credentials directory");
  add->add_option("--ca", options->trusted_roots,
                  "Trusted roots of its certificates: a file or directory on vergerd's machine, "
                  "relative to DATA/trusted-roots (default: vergerd's --ca)");
  add->add_option("--label", options->labels, "KEY=VALUE that policies select clusters by");
  add->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return add_cluster(context, *options); };
  });

  auto* list = cluster->add_subcommand("list", "The registered clusters");
  list->callback([&chosen] { chosen = list_clusters; });

  auto name = std::make_shared<std::string>();
  auto* show = cluster->add_subcommand("show", "The nodes of a cluster as they are now");
  show->footer("Example: verger cluster show orders");
  show->add_option("CLUSTER", *name)->required();
  show->callback([name, &chosen] {
    chosen = [name](const CliContext& context) { return show_cluster(context, *name); };
  });

  auto changes = std::make_shared<AddOptions>();
  auto* update = cluster->add_subcommand(
      "update", "Change a cluster's nodes, credentials or roots; runs and history stay");
  update->footer("Example: verger cluster update orders --credentials orders-2027");
  update->add_option("CLUSTER", changes->name_or_file)->required();
  update->add_option("--node", changes->nodes,
                     "URL of a node, or NAME=URL; once for each node the cluster has from now on");
  update->add_option("--agent", changes->agents,
                     "URL of the agent beside it in the same order, or NAME=URL");
  update->add_option("--credentials", changes->credentials,
                     "Name of a file in vergerd's credentials directory");
  update->add_option("--ca", changes->trusted_roots, "Trusted roots of its certificates");
  update->callback([changes, &chosen] {
    chosen = [changes](const CliContext& context) { return update_cluster(context, *changes); };
  });

  auto labels = std::make_shared<std::vector<std::string>>();
  auto labelled = std::make_shared<std::string>();
  auto* label = cluster->add_subcommand("label", "Set or remove labels that policies select by");
  label->footer("Example: verger cluster label orders tier=gold team-");
  label->add_option("CLUSTER", *labelled)->required();
  label->add_option("KEY=VALUE", *labels, "A label to set, or KEY- for one to remove")->required();
  label->callback([labels, labelled, &chosen] {
    chosen = [labels, labelled](const CliContext& context) {
      return label_cluster(context, *labelled, *labels);
    };
  });

  auto* remove = cluster->add_subcommand("remove", "Forget a cluster; its nodes are not touched");
  remove->add_option("CLUSTER", *name)->required();
  remove->callback([name, &chosen] {
    chosen = [name](const CliContext& context) { return remove_cluster(context, *name); };
  });
  add_cluster_discovery(*cluster, chosen);
  add_cluster_growth(*cluster, chosen);
  add_cluster_intents(*cluster, chosen);
}

}  // namespace verger::cli
