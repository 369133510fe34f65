#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "engine/base/file_system.h"
#include "nodeagent/http/client.h"

// cluster discover
namespace verger::cli {
namespace {

using nlohmann::json;

struct DiscoverOptions {
  std::string url;
  std::string name;
  std::string credentials;
  std::string trusted_roots;
  std::int64_t agent_port = http::kAgentPort;
  bool agents = false;
  std::string out;
};

/// As a word of a shell: what is put into a command line to copy may come from a node.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_.:/=[]@%+,") == std::string::npos;
  if (plain) {
    return text;
  }
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

/// Proposes an agent beside each node, also where none answers yet.
void add_agents_to_come(json& registration, std::int64_t port) {
  for (auto& node : registration["nodes"]) {
    const auto url = http::parse_endpoint(text_of(node, "node"));
    if (!node.contains("agent") && url) {
      node["agent"] =
          http::Endpoint{.tls = true, .host = url->host, .port = static_cast<std::uint16_t>(port)}
              .url();
    }
  }
}

std::string command_for(const json& registration) {
  std::string out = "verger cluster add " + shell_word(text_of(registration, "name"));
  for (const auto* what : {"node", "agent"}) {
    for (const auto& node : list_of(registration, "nodes")) {
      if (const auto url = text_of(node, what); !url.empty()) {
        out += fmt::format(" \\\n  --{} {}", what, shell_word(text_of(node, "name") + "=" + url));
      }
    }
  }
  for (const auto& [member, option] :
       {std::pair("credentials", "--credentials"), std::pair("trusted_roots", "--ca")}) {
    if (const auto value = text_of(registration, member); !value.empty()) {
      out += fmt::format(" \\\n  {} {}", option, shell_word(value));
    }
  }
  return out;
}

/// One agent for each node, or none: that is what can be registered.
void keep_agents_only_if_complete(const CliContext& context, json& registration) {
  std::size_t with = 0;
  for (const auto& node : list_of(registration, "nodes")) {
    with += node.contains("agent") ? 1U : 0U;
  }
  if (with == 0 || with == registration["nodes"].size()) {
    return;
  }
  for (auto& node : registration["nodes"]) {
    node.erase("agent");
  }
  context.err << "verger: not every node has an agent that answers, so the command names none; "
                 "--agents proposes one for each\n";
}

int discover(const CliContext& context, const DiscoverOptions& options) {
  auto found = context.api.post("/discoveries", {{"url", options.url},
                                                 {"name", options.name},
                                                 {"credentials", options.credentials},
                                                 {"trusted_roots", options.trusted_roots},
                                                 {"agent_port", options.agent_port}});
  if (!found) {
    return context.fail(found.error());
  }
  auto& registration = (*found)["registration"];
  if (options.agents) {
    add_agents_to_come(registration, options.agent_port);
  }
  keep_agents_only_if_complete(context, registration);
  if (!options.out.empty()) {
    const auto text = registration.dump(2) + '\n';
    if (const auto written = write_file_durably(posix_file_system(), options.out, as_bytes(text));
        !written) {
      context.err << "verger: --out " << written.error().message << '\n';
      return kFailed;
    }
  }
  if (context.json) {
    context.out << found->dump() << '\n';
    return kDone;
  }
  Table table({{"node"},
               {"url", Table::Align::kWrap},
               {"role"},
               {"version", Table::Align::kLeft, true},
               {"agent", Table::Align::kWrap}});
  for (const auto& node : list_of(*found, "nodes")) {
    const auto agent = text_of(node, "agent");
    const auto enrolled = text_of(node, "agent_enrolled_as");
    table.add({text_of(node, "name"), text_of(node, "url"),
               node.value("is_alive", false) ? text_of(node, "state") : "not alive",
               text_of(node, "version").empty() ? "-" : text_of(node, "version"),
               agent.empty()      ? "none answers"
               : enrolled.empty() ? agent
                                  : fmt::format("{} (enrolled as {})", agent, enrolled)});
  }
  context.print(table);
  for (const auto& note : list_of(*found, "notes")) {
    context.out << "note: " << note.get<std::string>() << '\n';
  }
  context.out << "\nTo register it, look at the names, then:\n"
              << (options.out.empty() ? command_for(registration)
                                      : "verger cluster add " + shell_word(options.out))
              << '\n';
  return kDone;
}

}  // namespace

void add_cluster_discovery(CLI::App& cluster, Command& chosen) {
  auto options = std::make_shared<DiscoverOptions>();
  auto* discover_command = cluster.add_subcommand(
      "discover", "Read the gossip of one node, and propose how to register the cluster");
  discover_command->footer(
      "Example: verger cluster discover https://n1.example.com:2113 --name orders \\\n"
      "           --credentials orders --ca orders-ca.crt");
  discover_command->add_option("URL", options->url, "URL of any of its nodes")->required();
  discover_command->add_option("--name", options->name, "Name to register it by");
  discover_command->add_option("--credentials", options->credentials,
                               "Name of a file in vergerd's credentials directory");
  discover_command->add_option("--ca", options->trusted_roots,
                               "Trusted roots of its certificates, as for verger cluster add");
  discover_command->add_flag("--agents", options->agents,
                             "Propose an agent beside each node, also where none answers yet");
  discover_command->add_option("--agent-port", options->agent_port, "Where agents are looked for")
      ->check(CLI::Range(1, 65'535));
  discover_command->add_option("--out", options->out,
                               "File for the proposal, which verger cluster add takes");
  discover_command->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return discover(context, *options); };
  });
}

}  // namespace verger::cli
