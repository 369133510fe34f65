#include "tests/simulation/full/final_checks.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "engine/base/sqlite.h"
#include "engine/streams/event_store.h"

namespace verger::sim {

using nlohmann::json;

namespace {

/// A node's database, opened read-only beside the running node.
struct OpenedDatabase {
  SeededRandom random{1};
  std::unique_ptr<streams::Database> database;
};

Result<std::unique_ptr<OpenedDatabase>> open_database(testing::SimHost& host) {
  auto opened = std::make_unique<OpenedDatabase>();
  streams::DatabaseOptions options;
  options.log.access = log::Access::kReadOnly;
  options.log.assume_stopped = true;
  options.index.read_only = true;
  options.index.max_mem_table_size = 10'000;
  options.index.stream_existence_filter_size = 10'000;
  VERGER_TRY(opened->database,
             streams::Database::open(host.disk(), "/db", options, /*commit_all=*/true, host.clock(),
                                     opened->random, null_log()));
  return opened;
}

struct Seen {
  std::vector<streams::ScavengePoint> points;
  std::string logical;
  std::string readable;
};

Result<Seen> look(streams::Database& database) {
  Seen seen;
  VERGER_TRY(seen.points, streams::scavenge_points(database));
  if (seen.points.empty()) {
    return seen;
  }
  const auto& last = seen.points.back();
  streams::DigestJob job(database, last.position, last.effective_now);
  for (;;) {
    VERGER_TRY(const auto outcome, job.step(Budget{.units = 100'000}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      break;
    }
  }
  seen.logical = to_hex(job.digest().logical);
  seen.readable = to_hex(job.digest().readable);
  return seen;
}

void check_writes(streams::Database& database, std::string_view node, const Writer& writer,
                  Watcher& watcher) {
  std::map<std::string, std::vector<streams::Event>> read;
  for (const auto& event : writer.acknowledged()) {
    auto found = read.find(event.stream);
    if (found == read.end()) {
      auto slice = database.read_forward(event.stream, EventNumber(0), 10'000);
      found = read.emplace(event.stream,
                           slice ? std::move(slice->events) : std::vector<streams::Event>())
                  .first;
    }
    const auto at = static_cast<std::size_t>(event.number);
    if (at >= found->second.size() || found->second[at].id.to_string() != event.id) {
      watcher.violation(fmt::format("{} lacks event {} of {}, which was acknowledged", node,
                                    event.number, event.stream));
      return;
    }
  }
}

void check_operations(Cluster& cluster, Watcher& watcher) {
  for (const auto name : kNodes) {
    // One request per operation id at most; an agent's own journal knows the ids.
    const auto& history = watcher.node(name);
    int scavenges = 0;
    bool others_start = false;  // an agent has its server finish what it has switched, and again
    auto database = sqlite::Database::open_snapshot(cluster.world().host(std::string(name)).disk(),
                                                    "/agent/journal.db");
    if (!database) {
      watcher.violation(fmt::format("{}: its agent's journal cannot be read: {}", name,
                                    database.error().message));
      continue;
    }
    auto statement = database->prepare("SELECT id, kind FROM operation");
    if (!statement) {
      watcher.violation(statement.error().message);
      continue;
    }
    for (auto row = statement->step(); row && *row; row = statement->step()) {
      const std::string id(statement->column_text(0));
      // What a step has other nodes do as well has the step's id and their names.
      if (!watcher.journal().operations.contains(id.substr(0, id.find('.')))) {
        watcher.violation(
            fmt::format("{}: operation {} was accepted, the journal has no intent", name, id));
      }
      const std::string kind(statement->column_text(1));
      scavenges += kind == "scavenge" ? 1 : 0;
      others_start = others_start || kind == "online_scavenge" || kind == "scavenge_point";
    }
    if (!others_start && history.starts_asked > scavenges) {
      watcher.violation(fmt::format("{} was asked {} times to scavenge by {} operations", name,
                                    history.starts_asked, scavenges));
    }
  }
}

/// Of a node that the run scavenged: of the same chunks, before and after.
void check_sizes(const json& node, Watcher& watcher) {
  const auto before = node.value("bytes_before", json());
  const auto after = node.value("bytes_after", json());
  const bool is_scavenged = node.value("space_saved", json()).is_number();
  // An agent beside its node has the sizes of all chunks, and the node is written to meanwhile.
  const bool is_of_all = node.value("way", std::string()) == "online";
  if (before.is_number() != after.is_number() || (is_scavenged && !before.is_number())) {
    watcher.violation("the report lacks sizes: " + node.dump());
  } else if (!is_of_all && before.is_number() && after > before) {
    watcher.violation("the report has a node that has grown: " + node.dump());
  }
}

void check_report(const json& run, const std::map<std::string, Seen>& seen, Watcher& watcher) {
  const auto report = run.value("report", json());
  if (!report.is_object()) {
    watcher.violation("the ended run has no report");
    return;
  }
  const auto point = report.value("point", json());
  if (!point.is_object()) {
    watcher.violation("the run is done and its report has no point");
    return;
  }
  const auto number = point.value("number", std::int64_t{-1});
  // What could be read before is not recorded of a node that was scavenged to the point by then.
  // Only then what can be read now is not asked for, where the records of all nodes are the same.
  const auto nodes = report.value("nodes", json::array());
  const bool is_recorded = std::ranges::any_of(nodes, [](const json& node) {
    return node.value("readable_digest_before", json()).is_string();
  });
  const bool is_explained =
      report.value("notes", json()).dump().find("was not compared with what it was before") !=
      std::string::npos;
  if (report.value("digests_equal", json()) != true ||
      report.value("readable_equal", json()) != true) {
    watcher.violation("the run is done, and its report does not say that the nodes are equal: " +
                      report.dump());
  }
  if (is_recorded == is_explained ||
      report.value("readable_unchanged", json()) != (is_recorded ? json(true) : json())) {
    watcher.violation("the report's readable_unchanged is not what was recorded before: " +
                      report.dump());
  }
  std::set<std::string> reported;
  for (const auto& node : nodes) {
    const auto name = node.value("name", std::string());
    reported.insert(name);
    if (!watcher.node(name).finished.contains(number)) {
      watcher.violation(
          fmt::format("the report says point {}, {} has not finished it", number, name));
    }
    const auto& truth = seen.at(name);
    const auto member = [&node](const char* of) {
      const auto& value = node.contains(of) ? node[of] : json();
      return value.is_string() ? value.get<std::string>() : std::string();
    };
    if (member("logical_digest") != truth.logical) {
      watcher.violation(fmt::format("the report's logical digest of {} is {}, the node's is {}",
                                    name, member("logical_digest"), truth.logical));
    }
    const auto shown = member("readable_digest");
    if (shown != truth.readable && (is_recorded || !shown.empty())) {
      watcher.violation(fmt::format("the report's readable digest of {} is {}, the node's is {}",
                                    name, shown, truth.readable));
    }
    check_sizes(node, watcher);
  }
  for (const auto name : kNodes) {
    if (!reported.contains(std::string(name))) {
      watcher.violation(fmt::format("the report lacks {}", name));
    }
  }
}

void check_left_over(Cluster& cluster, Watcher& watcher) {
  if (!cluster.online.locked.empty()) {
    watcher.violation("the run has ended, and the chunk lock is held on " +
                      *cluster.online.locked.begin());
  }
  for (const auto name : kNodes) {
    const auto entries = cluster.world().host(std::string(name)).disk().list("/db");
    for (const auto& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
      if (entry.name == ".verger-online" || entry.name.ends_with(".online.tmp")) {
        watcher.violation(fmt::format("{}: {} is left", name, entry.name));
      }
    }
  }
}

}  // namespace

void check_end(Cluster& cluster, Watcher& watcher, const Writer& writer, const Person& person,
               bool faults) {
  for (const auto& complaint : writer.complaints()) {
    watcher.violation(complaint);
  }
  const auto& journal = watcher.journal();
  if (auto* controller = cluster.controller()) {
    if (const auto verified = controller->journal().verify(); !verified) {
      watcher.violation("the journal: " + verified.error().message);
    }
  }
  check_operations(cluster, watcher);
  if (!faults) {
    check_left_over(cluster, watcher);
  }

  std::map<std::string, Seen> seen;
  for (const auto name : kNodes) {
    auto opened = open_database(cluster.world().host(std::string(name)));
    if (!opened) {
      watcher.violation(
          fmt::format("{}: the database does not open: {}", name, opened.error().message));
      continue;
    }
    check_writes(*(*opened)->database, name, writer, watcher);
    auto looked = look(*(*opened)->database);
    if (!looked) {
      watcher.violation(fmt::format("{}: {}", name, looked.error().message));
      continue;
    }
    seen.emplace(name, *std::move(looked));
  }
  if (seen.size() != kNodes.size()) {
    return;
  }
  const auto& first = seen.begin()->second;
  for (const auto& [name, other] : seen) {
    if (other.points != first.points) {
      watcher.violation(fmt::format("{} has {} scavenge points, {} has {}", name,
                                    other.points.size(), seen.begin()->first, first.points.size()));
    } else if (other.readable != first.readable) {
      watcher.violation(
          fmt::format("what {} lets read differs from {}", name, seen.begin()->first));
    } else if (journal.run_state == "done" && other.logical != first.logical) {
      watcher.violation(
          fmt::format("the logical digest of {} differs from {}", name, seen.begin()->first));
    }
  }

  if (journal.run_state == "done") {
    const auto run = json::parse(person.run_view(), nullptr, false);
    if (!run.is_object() || run.value("state", std::string()) != "done") {
      watcher.violation("the journal says done, the API says: " + person.run_view());
    } else {
      check_report(run, seen, watcher);
    }
  } else if (journal.run_state.empty()) {
    // It waits for a person, as the caller has seen.
  } else if (!faults) {
    watcher.violation(fmt::format("without any fault the run ended {}: {}", journal.run_state,
                                  journal.run_reason));
  } else if (journal.run_reason.empty()) {
    watcher.violation(fmt::format("the run ended {} without a reason", journal.run_state));
  }
}

}  // namespace verger::sim
