#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "nodeagent/http/loopback.h"

// agent token | enrol | list | forget
namespace verger::cli {
namespace {

using nlohmann::json;

struct TokenOptions {
  std::string agent;
  std::vector<std::string> hosts;
  std::int64_t minutes = 60;
  std::int64_t seconds = 0;
  std::string out;  ///< file; empty: stdout
  // Of `enrol`:
  std::string url;
  std::string ca_file_on_node;
  std::string config = "/etc/verger/verger-agent.yaml";
};

/// "orders/n1"
std::optional<std::pair<std::string, std::string>> cluster_and_node(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, slash), text.substr(slash + 1));
}

int not_an_agent(const CliContext& context, const std::string& text) {
  context.err << fmt::format("verger: \"{}\": an agent is named CLUSTER/NODE, such as orders/n1\n",
                             text);
  return kUsage;
}

int make_token(const CliContext& context, const TokenOptions& options) {
  const auto agent = cluster_and_node(options.agent);
  if (!agent) {
    return not_an_agent(context, options.agent);
  }
  if (const auto free = check_secret_file(options.out); !free) {
    context.err << "verger: --out " << free.error().message << '\n';
    return kUsage;
  }
  const auto token = context.api.post(
      "/agents/tokens",
      {{"cluster", agent->first},
       {"node", agent->second},
       {"hosts", options.hosts},
       {"valid_for_seconds", options.seconds > 0 ? options.seconds : options.minutes * 60}});
  if (!token) {
    return context.fail(token.error());
  }
  const auto about = fmt::format(
      "a token for the agent of {}, good once, until {}; it is shown this once. Beside the node: "
      "verger-agent enrol --controller URL --state DIR --token-file FILE\n",
      options.agent, time_of(*token, "expires_at"));
  return context.show_secret(*token, about, options.out);
}

/// A token, inside the line to paste on the node. It is never a word of a command there: printf is
/// the shell's own.
int print_enrolment(const CliContext& context, const TokenOptions& options) {
  const auto agent = cluster_and_node(options.agent);
  if (!agent) {
    return not_an_agent(context, options.agent);
  }
  auto token = context.api.post("/agents/tokens", {{"cluster", agent->first},
                                                   {"node", agent->second},
                                                   {"hosts", options.hosts},
                                                   {"valid_for_seconds", options.minutes * 60}});
  if (!token) {
    return context.fail(token.error());
  }
  auto url = options.url.empty() ? text_of(*token, "controller") : options.url;
  if (url.empty()) {
    url = context.api.controller().url();
  }
  const auto endpoint = http::parse_endpoint(url, http::kControllerPort);
  if (!endpoint) {
    context.err << "verger: --url: " << endpoint.error().message << '\n';
    return kUsage;
  }
  std::string trust;
  if (!options.ca_file_on_node.empty()) {
    trust = " --ca-file " + options.ca_file_on_node;
  } else if (endpoint->tls && !token->value("pins_controller", false)) {
    trust = " --ca-file /etc/verger/verger-root.crt";
    context.err << "verger: vergerd's certificate is of another authority than the token: copy its "
                   "root to /etc/verger/verger-root.crt on the node first (--ca-file-on-node names "
                   "another place)\n";
  }
  if (http::is_loopback(endpoint->host)) {
    context.err << fmt::format(
        "verger: {} is vergerd's own machine; for other nodes give --url, or vergerd a name with "
        "--api-names (vergerd init)\n",
        endpoint->url());
  }
  const auto line = fmt::format(
      "printf '%s\\n' '{}' | sudo verger-agent enrol --config {} --controller {}{} --token-file - "
      "&& sudo systemctl enable --now verger-agent",
      text_of(*token, "token"), options.config, endpoint->url(), trust);
  if (context.json) {
    (*token)["command"] = line;
    context.out << token->dump() << '\n';
    return kDone;
  }
  context.err << fmt::format(
      "on the node {}, once, until {} (the line has the one-time token in it):\n", options.agent,
      time_of(*token, "expires_at"));
  context.out << line << '\n';
  return kDone;
}

int list_agents(const CliContext& context) {
  const auto answer = context.api.get("/agents");
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    for (const auto* list : {"agents", "tokens"}) {
      for (auto one : list_of(*answer, list)) {
        one["state"] = std::string_view(list) == "agents" ? "enrolled"
                       : one.value("expired", false)      ? "token expired"
                                                          : "token open";
        context.out << one.dump() << '\n';
      }
    }
    return kDone;
  }
  Table table({{"agent"},
               {"state"},
               {"until"},
               {"serial", Table::Align::kId},
               {"hosts", Table::Align::kWrap}});
  const auto add = [&](const json& one, const char* state, const char* until) {
    std::string hosts;
    for (const auto& host : list_of(one, "hosts")) {
      hosts += (hosts.empty() ? "" : " ") + host.get<std::string>();
    }
    const auto serial = text_of(one, "serial");
    table.add({text_of(one, "cluster") + "/" + text_of(one, "node"), state, time_of(one, until),
               serial.empty() ? "-" : serial, hosts});
  };
  for (const auto& agent : list_of(*answer, "agents")) {
    add(agent, "enrolled", "not_after");
  }
  for (const auto& token : list_of(*answer, "tokens")) {
    add(token, token.value("expired", false) ? "token expired" : "token open", "expires_at");
  }
  context.print(table);
  return kDone;
}

int forget_agent(const CliContext& context, const std::string& text) {
  const auto agent = cluster_and_node(text);
  if (!agent) {
    return not_an_agent(context, text);
  }
  const auto answer = context.api.remove(fmt::format(
      "/agents/{}/{}", http::percent_encode(agent->first), http::percent_encode(agent->second)));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << json{{"agent", text}, {"forgotten", true}}.dump() << '\n';
  } else {
    context.out << fmt::format(
        "the certificate of the agent of {} is revoked; to let it in again: "
        "verger agent token {}\n",
        text, text);
  }
  return kDone;
}

}  // namespace

void add_agent_commands(CLI::App& app, Command& chosen) {
  auto* agent = app.add_subcommand("agent", "Agents with a certificate of vergerd's own");
  agent->require_subcommand(1);
  auto options = std::make_shared<TokenOptions>();
  auto* token = agent->add_subcommand("token", "A one-time token with which an agent enrols");
  token->footer("Example: verger agent token orders/n1 --out n1.token");
  token->add_option("CLUSTER/NODE", options->agent)->required();
  token->add_option("--host", options->hosts,
                    "Name or address in the agent's URL, where the cluster is not registered yet");
  token->add_option("--out", options->out,
                    "A new file for it, which only you can read (mode 0600)");
  token->add_option("--valid-for-minutes", options->minutes)->check(CLI::Range(1, 7 * 24 * 60));
  token->add_option("--valid-for-seconds", options->seconds, "For tests")->group("");
  token->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return make_token(context, *options); };
  });
  auto line = std::make_shared<TokenOptions>();
  auto* enrol = agent->add_subcommand(
      "enrol", "One line to paste on a node, with which its agent enrols and starts");
  enrol->footer("Example: verger agent enrol orders/n1");
  enrol->add_option("CLUSTER/NODE", line->agent)->required();
  enrol->add_option("--host", line->hosts,
                    "Name or address in the agent's URL, where the cluster is not registered yet");
  enrol->add_option("--url", line->url,
                    "URL by which the node reaches vergerd (default: as vergerd is configured)");
  enrol->add_option("--agent-config", line->config, "The agent's configuration file on the node");
  enrol->add_option("--ca-file-on-node", line->ca_file_on_node,
                    "File on the node with the root of vergerd's certificate, where that is not of "
                    "vergerd's own authority");
  enrol->add_option("--valid-for-minutes", line->minutes)->check(CLI::Range(1, 7 * 24 * 60));
  enrol->callback([line, &chosen] {
    chosen = [line](const CliContext& context) { return print_enrolment(context, *line); };
  });
  agent->add_subcommand("list", "Agents that have enrolled, and tokens not yet used")
      ->callback([&chosen] { chosen = list_agents; });
  auto name = std::make_shared<std::string>();
  auto* forget = agent->add_subcommand("forget", "Revoke an agent's certificate");
  forget->add_option("CLUSTER/NODE", *name)->required();
  forget->callback([name, &chosen] {
    chosen = [name](const CliContext& context) { return forget_agent(context, *name); };
  });
}

}  // namespace verger::cli
