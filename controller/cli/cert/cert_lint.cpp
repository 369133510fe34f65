#include "controller/cli/cert/cert_lint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <pwd.h>
#include <set>
#include <sstream>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_served.h"
#include "controller/cli/table.h"
#include "engine/base/clock.h"
#include "engine/base/users.h"
#include "nodeagent/certificates/tls_files.h"
#include "nodeagent/http/message.h"

namespace verger::cli {
namespace {

namespace fs = std::filesystem;
using certificates::FileSeen;
using certificates::Finding;
using certificates::LintInput;
using certificates::LintNode;
using certificates::LintReport;
using certificates::Severity;
using nlohmann::json;

Error wrong_lint_option(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

FileSeen see_file(const fs::path& path) {
  FileSeen out{.path = path.string()};
  struct stat seen{};
  if (::stat(path.c_str(), &seen) == 0) {
    out.mode = seen.st_mode & 07777U;
    out.owner = seen.st_uid;
    out.group = seen.st_gid;
  }
  if (auto text = text_of_file(path.string())) {
    out.content = *std::move(text);
  } else {
    out.unreadable = text.error().message;
  }
  return out;
}

Result<std::vector<FileSeen>> see_roots(const std::string& path) {
  VERGER_TRY(const auto files, certificates::root_files(path));
  std::vector<FileSeen> out;
  out.reserve(files.size());
  for (const auto& file : files) {
    out.push_back(see_file(file));
  }
  return out;
}

/// The one file with this extension; or the name that it should have.
fs::path only_file(const fs::path& directory, std::string_view extension) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == extension) {
      found.push_back(entry.path());
    }
  }
  return found.size() == 1 ? found.front() : directory / ("node" + std::string(extension));
}

/// The same of a node's folder, and why it is not clear which one it is.
FileSeen see_only_file(const fs::path& folder, const char* extension) {
  auto out = see_file(only_file(folder, extension));
  std::error_code ignored;
  const auto count = std::ranges::count_if(
      fs::directory_iterator(folder, ignored),
      [&](const auto& entry) { return entry.path().extension() == extension; });
  if (count != 1) {
    out.unreadable = count == 0
                         ? fmt::format("the folder {} has no {} file", folder.string(), extension)
                         : fmt::format("the folder {} has {} {} files, and takes one",
                                       folder.string(), count, extension);
  }
  return out;
}

bool is_version(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  return digits != 0 && (digits == std::string_view::npos || text[digits] == '.') &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// NAME=VALUE options by name.
Result<std::map<std::string, std::string>> by_name(const std::vector<std::string>& words,
                                                   std::string_view option) {
  std::map<std::string, std::string> out;
  for (const auto& word : words) {
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == word.size()) {
      return wrong_lint_option(
          fmt::format("{} {}: it takes NAME=…, with the name of a node's folder", option, word));
    }
    out[word.substr(0, at)] = word.substr(at + 1);
  }
  return out;
}

Result<unsigned> user_id(const std::string& user) {
  unsigned number = 0;
  const auto* end = user.data() + user.size();
  if (const auto read = std::from_chars(user.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    return number;
  }
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> space(4096);
  ::getpwnam_r(user.c_str(), &entry, space.data(), space.size(), &found);
  if (found == nullptr) {
    return wrong_lint_option(fmt::format("--owner {}: there is no such user here", user));
  }
  return found->pw_uid;
}

void add_address(std::vector<std::string>& to, const std::string& address) {
  if (!address.empty() && std::ranges::find(to, address) == to.end()) {
    to.push_back(address);
  }
}

/// What the node shows and says, if it has a URL.
void look_at(const std::string& url, const LintOptions& options, const std::string& roots,
             LintNode& node, std::vector<std::string>& problems) {
  auto chain = served_by(url);
  if (!chain) {
    problems.push_back(fmt::format("{} is checked without what it shows now: {}", node.name,
                                   chain.error().message));
    return;
  }
  node.served = certificates::ServedNow{.chain = *std::move(chain)};
  auto answers = ask_node(url, options.current_roots.empty() ? roots : options.current_roots);
  for (const auto& address : answers.addresses) {
    add_address(node.addresses, address);
  }
  node.clock_ahead = answers.clock_ahead;
  if (node.version.empty()) {
    node.version = answers.version;
  }
  std::ranges::move(answers.problems, std::back_inserter(problems));
}

json to_json(const Finding& finding) {
  return json{{"severity", finding.severity == Severity::kError ? "error" : "warning"},
              {"code", finding.code},
              {"node", finding.node},
              {"where", finding.where},
              {"message", finding.message},
              {"next", finding.next}};
}

json to_json(const certificates::TrustCell& cell) {
  const auto accepted = [&](const std::string& why_not) {
    return cell.known ? json(why_not.empty()) : json();
  };
  return json{{"from", cell.from},
              {"from_state", text_of(cell.from_state)},
              {"to", cell.to},
              {"to_state", text_of(cell.to_state)},
              {"as_server", accepted(cell.not_as_server)},
              {"as_client", accepted(cell.not_as_client)},
              {"why", cell.not_as_server.empty() ? cell.not_as_client : cell.not_as_server}};
}

void print_json(const LocalContext& context, const LintReport& report,
                const std::vector<std::string>& problems) {
  json out{{"passed", report.passed()},
           {"findings", json::array()},
           {"stages", json::array()},
           {"notes", problems}};
  for (const auto& finding : report.findings) {
    out["findings"].push_back(to_json(finding));
  }
  for (const auto& stage : report.stages) {
    json cells = json::array();
    for (const auto& cell : stage.cells) {
      cells.push_back(to_json(cell));
    }
    out["stages"].push_back({{"name", stage.name}, {"holds", stage.holds()}, {"cells", cells}});
  }
  context.out << out.dump() << '\n';
}

/// Rows: who shows its certificate; columns: who has to accept it.
void print_matrix(const LocalContext& context, const certificates::TrustStage& stage) {
  const auto label = [](const std::string& node, certificates::TrustState state) {
    return fmt::format("{} {}", node, text_of(state));
  };
  std::vector<std::string> names;
  for (const auto& cell : stage.cells) {
    add_address(names, label(cell.from, cell.from_state));
  }
  std::vector<Table::Column> columns{{.title = "SHOWN BY"}};
  for (const auto& name : names) {
    columns.push_back({.title = name});
  }
  Table table(std::move(columns));
  for (const auto& from : names) {
    std::vector<std::string> row{from};
    for (const auto& to : names) {
      const auto cell = std::ranges::find_if(stage.cells, [&](const auto& each) {
        return label(each.from, each.from_state) == from && label(each.to, each.to_state) == to;
      });
      row.emplace_back(cell == stage.cells.end()      ? "."
                       : !cell->known                 ? "?"
                       : cell->holds()                ? "yes"
                       : cell->common_name_only       ? "name"
                       : !cell->not_as_server.empty() ? "NO"
                                                      : "no client");
    }
    table.add(std::move(row));
  }
  context.out << fmt::format("\nstage \"{}\": is what a node shows accepted by …\n", stage.name);
  table.print(context.out, context.width);
}

void print_report(const LocalContext& context, const LintReport& report,
                  const std::vector<std::string>& problems) {
  for (const auto& problem : problems) {
    context.err << "note: " << problem << '\n';
  }
  for (const auto& finding : report.findings) {
    context.out << fmt::format("{}: {}{}{}: {}\n  next: {}\n",
                               finding.severity == Severity::kError ? "error" : "warning",
                               finding.node.empty() ? "" : finding.node + ": ",
                               finding.where.empty() ? "" : finding.where + ": ", finding.code,
                               finding.message, finding.next);
  }
  const bool several = std::ranges::any_of(
      report.stages, [](const certificates::TrustStage& stage) { return !stage.cells.empty(); });
  if (several) {  // a node alone needs the trust of none
    for (const auto& stage : report.stages) {
      print_matrix(context, stage);
    }
    context.out << '\n';
  }
  const auto errors = std::ranges::count(report.findings, Severity::kError, &Finding::severity);
  context.out << (errors == 0 ? "passed: these certificates can be used\n"
                              : fmt::format("failed: {} error{}; nothing was touched\n", errors,
                                            errors == 1 ? "" : "s"));
}

int run_lint(const LocalContext& context, const LintOptions& options) {
  std::vector<std::string> problems;
  const auto input = gather(options, system_clock().now(), problems);
  if (!input) {
    context.err << "verger: " << input.error().message << '\n';
    return kUsage;
  }
  const auto report = certificates::lint(*input);
  print_lint(context, report, problems);
  return report.passed() ? kDone : kRefused;
}

}  // namespace

void print_lint(const LocalContext& context, const LintReport& report,
                const std::vector<std::string>& problems) {
  if (context.json) {
    print_json(context, report, problems);
  } else {
    print_report(context, report, problems);
  }
}

Result<LintInput> gather(const LintOptions& options, Ticks now,
                         std::vector<std::string>& problems) {
  const fs::path directory(options.directory);
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return wrong_lint_option(
        fmt::format("{} is not a directory; give one with a folder per node", options.directory));
  }
  VERGER_TRY(const auto urls, by_name(options.nodes, "--node"));
  for (const auto& [name, url] : urls) {
    const auto endpoint = http::parse_endpoint(url);
    if (!endpoint || !endpoint->tls) {
      return wrong_lint_option(
          fmt::format("--node {}={}: {}", name, url,
                      endpoint ? "it takes an https URL" : endpoint.error().message));
    }
  }
  VERGER_TRY(const auto addresses, by_name(options.addresses, "--address"));
  const auto roots_path = options.roots.empty() ? (directory / "ca").string() : options.roots;
  for (const auto& [option, path] : {std::pair("--trusted-roots", &options.roots),
                                     std::pair("--current-roots", &options.current_roots)}) {
    if (!path->empty() && !fs::exists(*path, ignored)) {
      return wrong_lint_option(
          fmt::format("{} {}: there is no such file or directory", option, *path));
    }
  }
  if (!options.version.empty() && !is_version(options.version)) {
    return wrong_lint_option(
        fmt::format("--server-version {}: it takes a version, such as 24.10.4", options.version));
  }
  VERGER_TRY(const auto roots, see_roots(roots_path));
  LintInput out{.now = now,
                .window = std::chrono::minutes(options.window_minutes),
                .trust_first = options.trust_first};
  std::string current;
  if (!options.current_roots.empty()) {
    VERGER_TRY(const auto files, see_roots(options.current_roots));
    for (const auto& file : files) {
      current += file.content;
    }
    out.others = files;
  }
  std::optional<unsigned> owner;
  std::vector<unsigned> groups;
  if (!options.owner.empty()) {
    VERGER_TRY(owner, user_id(options.owner));
    groups = groups_of_user(*owner);
  }
  VERGER_TRY(const auto password, options.key_password.read());
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    // Folders of certificates without a key of a node: authorities, whose files may be named.
    if (!entry.is_directory()) {
      continue;
    }
    const auto certificate = only_file(entry.path(), ".crt");
    if (entry.path().filename() == "ca" || certificate.stem() == "ca" ||
        fs::equivalent(entry.path(), roots_path, ignored)) {
      out.others.push_back(see_file(certificate));
    } else if (!certificate.stem().string().starts_with("user-")) {
      folders.insert(entry.path());
    }
  }
  for (const auto& folder : folders) {
    LintNode node{.name = folder.filename().string(),
                  .version = options.version,
                  .reserved_common_name = options.reserved_common_name,
                  .client_usage_disabled = options.no_client_usage,
                  .loads_ec_keys = options.ec_keys,
                  .owner = owner,
                  .groups = groups,
                  .next = {.certificate = see_only_file(folder, ".crt"),
                           .key = see_only_file(folder, ".key"),
                           .key_password = password,
                           .roots = roots}};
    if (const auto found = addresses.find(node.name); found != addresses.end()) {
      std::istringstream words(found->second);
      for (std::string word; std::getline(words, word, ',');) {
        add_address(node.addresses, word);
      }
    }
    if (const auto found = urls.find(node.name); found != urls.end()) {
      look_at(found->second, options, roots_path, node, problems);
      if (node.served) {
        node.served->roots = current;
      }
    }
    out.nodes.push_back(std::move(node));
  }
  for (const auto* named : {&urls, &addresses}) {
    for (const auto& [name, value] : *named) {
      if (std::ranges::find(out.nodes, name, &LintNode::name) == out.nodes.end()) {
        return wrong_lint_option(fmt::format("{}={}: there is no folder {} in {}", name, value,
                                             name, options.directory));
      }
    }
  }
  return out;
}

void add_cert_lint(CLI::App& cert, LocalCommand& chosen) {
  const auto options = std::make_shared<LintOptions>();
  auto* command = cert.add_subcommand(
      "lint", "Check new certificates before anything is touched; each error has a stable code");
  command->footer(
      "Example: verger cert lint ./certs --node node1=https://10.0.0.1:2113 "
      "--node node2=https://10.0.0.2:2113 --node node3=https://10.0.0.3:2113");
  command
      ->add_option("DIRECTORY", options->directory,
                   "One folder per node, with a .crt and a .key file in each")
      ->required();
  command->add_option("--trusted-roots", options->roots,
                      "New trusted roots, a file or a directory (DIRECTORY/ca)");
  command->add_option("--current-roots", options->current_roots,
                      "Roots that the nodes trust now; by default those of the new ones from which "
                      "a node's certificate comes");
  command
      ->add_option(
          "--node", options->nodes,
          "NAME=URL: compare with what this node shows, and read its addresses and version")
      ->allow_extra_args(false);
  command
      ->add_option("--address", options->addresses,
                   "NAME=ADDRESS,…: by which others reach the node")
      ->allow_extra_args(false);
  command->add_option("--server-version", options->version,
                      "Of all nodes; by default what the nodes say");
  command->add_option("--reserved-common-name", options->reserved_common_name,
                      "CertificateReservedNodeCommonName, where the nodes have it");
  command->add_flag("--no-client-usage", options->no_client_usage,
                    "The nodes have DisableClientAuthEkuValidation");
  command->add_flag("--ec-keys", options->ec_keys, "The nodes load EC keys: embedded nodes do");
  command->add_flag("--trust-first", options->trust_first,
                    "Check the order of a new CA: trust both, new leaves, drop the old root");
  command->add_option("--window", options->window_minutes, "Minutes that the change may take")
      ->capture_default_str()
      ->check(CLI::Range(1, 1440));
  command->add_option("--owner", options->owner, "User, by name or number, the servers run as");
  add_password_options(*command, "key-password", "encrypted keys", options->key_password);
  command->callback([options, &chosen] {
    chosen = [options](const LocalContext& context) { return run_lint(context, *options); };
  });
}

}  // namespace verger::cli
