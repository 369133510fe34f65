#include "controller/cli/cert/cert_status.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// "CN=n1" -> "n1"; another subject stays as it is.
std::string short_subject(const json& certificate) {
  const auto subject = text_of(certificate, "subject");
  return subject.starts_with("CN=") && subject.find(',') == std::string::npos ? subject.substr(3)
                                                                              : subject;
}

std::string days_text(const json& certificate) {
  const auto days = number_of(certificate, "days_left");
  return days < 0 ? "EXPIRED" : std::to_string(days);
}

/// The certificates of one place, except those that a place above has shown: a chain on disk that
/// is the one that is served.
void add_rows(Table& table, const json& node, const char* place, const char* shown_as,
              const json& shown) {
  for (const auto& each : list_of(node, place)) {
    const bool known = std::ranges::any_of(shown, [&each](const json& other) {
      return text_of(other, "fingerprint") == text_of(each, "fingerprint");
    });
    if (known) {
      continue;
    }
    table.add({text_of(node, "node"), shown_as, text_of(each, "kind"), short_subject(each),
               text_of(each, "serial"), time_of(each, "not_after"), days_text(each)});
  }
}

std::vector<json> clusters_of(const CliContext& context, const std::string& cluster, int& status) {
  std::vector<std::string> names{cluster};
  if (cluster.empty()) {
    names.clear();
    const auto all = context.api.get_all("/clusters", "clusters");
    if (!all) {
      status = context.fail(all.error());
      return {};
    }
    for (const auto& each : list_of(*all, "clusters")) {
      names.push_back(text_of(each, "name"));
    }
  }
  std::vector<json> out;
  for (const auto& name : names) {
    auto answer = context.api.get("/clusters/" + http::percent_encode(name) + "/certificates");
    if (!answer) {
      status = context.fail(answer.error());
      continue;
    }
    out.push_back(*std::move(answer));
  }
  return out;
}

int run_status(const CliContext& context, const std::string& cluster) {
  int status = kDone;
  const auto answers = clusters_of(context, cluster, status);
  for (const auto& answer : answers) {
    if (context.json) {
      context.out << answer.dump() << '\n';
    } else {
      print_certificates(context, answer);
    }
  }
  if (answers.empty() && status == kDone && !context.json) {
    context.out << "no cluster is registered\n";
  }
  return status;
}

}  // namespace

void print_certificates(const CliContext& context, const json& answer) {
  const auto first = answer.value("first_end", json());
  context.out << fmt::format(
      "cluster {} at {}{}\n", text_of(answer, "cluster"), time_of(answer, "taken_at"),
      first.is_object()
          ? fmt::format("; first to end: {} of {} of {} at {}", text_of(first, "kind"),
                        text_of(first, "of") == "node"    ? "the certificate"
                        : text_of(first, "of") == "users" ? "the certificates of users"
                                                          : text_of(first, "of"),
                        text_of(first, "node"), time_of(first, "not_after"))
          : std::string());
  Table table({{"node"},
               {"seen"},
               {"kind"},
               {"subject", Table::Align::kWrap},
               {"serial", Table::Align::kId},
               {"valid until"},
               {"days left", Table::Align::kRight}});
  std::string notes;
  for (const auto& node : list_of(answer, "nodes")) {
    const auto served = list_of(node, "served");
    add_rows(table, node, "served", "served", json::array());
    add_rows(table, node, "files", "on disk", served);
    add_rows(table, node, "agent", "agent", json::array());
    add_rows(table, node, "users", "of a user", json::array());
    const auto name = text_of(node, "node");
    if (node.value("file_differs", json()) == true) {
      notes += fmt::format(
          "{}: its file holds another certificate than it serves: it was not reloaded, or the node "
          "refused it (its log says why). POST /admin/reloadconfig there reads the file\n",
          name);
    } else if (node.value("file_differs", json()) == false) {
      notes += fmt::format("{}: serves what its file holds\n", name);
    }
    for (const auto& unknown : list_of(node, "not_known")) {
      notes += fmt::format("{}: not known: {}\n", name, unknown.get<std::string>());
    }
  }
  if (!table.empty()) {
    context.print(table);
  }
  context.out << notes;
}

void add_cert_status(CLI::App& cert, Command& chosen) {
  auto cluster = std::make_shared<std::string>();
  auto* status = cert.add_subcommand(
      "status", "What the nodes of a cluster serve, what their files hold, and when each ends");
  status->footer("Example: verger cert status orders");
  status->add_option("CLUSTER", *cluster, "All registered ones where none is given");
  status->callback([cluster, &chosen] {
    chosen = [cluster](const CliContext& context) { return run_status(context, *cluster); };
  });
}

}  // namespace verger::cli
