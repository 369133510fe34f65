#include "planner/restore/restore_notes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/clock.h"
#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/detail/hours_note.h"

namespace verger::planner::detail {
namespace {

/// "3 h 20 min"; empty: not known.
std::string age_of(const std::string& taken_at, Ticks now) {
  const auto taken = parse_ticks(taken_at);
  if (!taken || *taken > now) {
    return {};
  }
  const auto minutes = (now.value() - taken->value()) / kTicksPerMillisecond / 60'000;
  const auto hours = minutes / 60;
  return minutes < 60 ? fmt::format("{} min", minutes)
         : hours < 48 ? fmt::format("{} h {} min", hours, minutes % 60)
                      : fmt::format("{} days {} h", hours / 24, hours % 24);
}

/// Whether a healthy cluster would be given up.
bool serves(const RestoreOrder& order) {
  const auto up = std::ranges::count_if(order.snapshot.nodes, [](const NodeSnapshot& node) {
    return !node.read_only_replica && is_up(node) && node.role != Role::kOther;
  });
  return order.snapshot.leader() != nullptr &&
         static_cast<std::size_t>(up) >= order.snapshot.quorum();
}

std::string row_of(const RestoreOrder& order, const NodeSnapshot& node) {
  const auto end = order.facts->generation.end_position;
  const auto writer = node.writer_checkpoint;
  if (writer < 0) {
    return fmt::format("{}its position is not known; its files are replaced, the backup ends at {}",
                       order.whole_cluster() ? "LOSES what it has beyond the backup: " : "",
                       with_separators(end));
  }
  if (!order.whole_cluster()) {
    return fmt::format("its log ends at {}, the backup at {}; the rest comes from the leader",
                       with_separators(writer), with_separators(end));
  }
  return writer > end
             ? fmt::format("LOSES {}: its log ends at {}, the backup at {}",
                           human_bytes(writer - end), with_separators(writer), with_separators(end))
             : fmt::format("loses nothing: its log ends at {}, the backup at {}",
                           with_separators(writer), with_separators(end));
}

void note_loss(const RestoreOrder& order, std::vector<std::string>& out) {
  const auto& backup = order.facts->generation;
  const auto age = age_of(backup.taken_at, order.snapshot.taken_at);
  out.push_back(fmt::format(
      "ALL EVENTS WRITTEN AFTER {} ARE LOST{}: the cluster continues from backup {} of {}, at log "
      "position {}",
      backup.taken_at.empty() ? "THE BACKUP" : backup.taken_at,
      age.empty() ? "" : fmt::format(" ({} before this plan)", age), backup.id, backup.node,
      with_separators(backup.end_position)));
  if (serves(order)) {
    out.push_back(fmt::format(
        "THE CLUSTER SERVES NOW: {} leads it. A restore of all nodes stops it and discards what it "
        "wrote since the backup; one damaged node is restored with --scope node",
        order.snapshot.leader()->name));
  }
  out.emplace_back(
      "subscribers, projections of applications and read models that saw later events are ahead "
      "of the restored log: reset them before they write again");
}

void note_checks(const RestoreGeneration& backup, std::vector<std::string>& out) {
  if (backup.verified.empty() && backup.drilled.empty()) {
    out.push_back(fmt::format(
        "backup {} was never verified, and no drill has restored it: every file is compared with "
        "its SHA-256 while it is restored, before a server starts",
        backup.id));
  } else {
    out.push_back(fmt::format("backup {}: verified {}, drilled {}", backup.id,
                              backup.verified.empty() ? "never" : backup.verified,
                              backup.drilled.empty() ? "never" : backup.drilled));
  }
}

/// Voters whose machines are lost, as far as the others have heard of them.
void note_lost_voters(const ClusterSnapshot& snapshot, std::vector<std::string>& out) {
  const auto lost = snapshot.unregistered_voters;
  const auto all = snapshot.voters() + lost;
  out.push_back(fmt::format(
      "{} in gossip {} not registered and {} not answer: {} must never start again with {} former "
      "files",
      counted(static_cast<std::int64_t>(lost), "voter"), lost == 1 ? "is" : "are",
      lost == 1 ? "does" : "do", lost == 1 ? "it" : "they", lost == 1 ? "its" : "their"));
  if (snapshot.voters() <= all / 2) {
    out.push_back(fmt::format(
        "{} of {} voters {} restored, which is no majority: without others, or a smaller "
        "ClusterSize, no leader is elected. Start new ones, with empty directories, one after the "
        "other, once the restored servers run",
        snapshot.voters(), all, snapshot.voters() == 1 ? "is" : "are"));
  }
}

void note_nodes(const RestoreOrder& order, std::vector<std::string>& out) {
  const auto& backup = order.facts->generation;
  std::vector<std::string_view> stopped;
  std::vector<std::string_view> replaced;
  for (const auto* node : order.nodes) {
    const auto own = version_number(node->version);
    const auto from = version_number(backup.server_version);
    if (own && from && *own < *from) {
      out.push_back(fmt::format(
          "{} is version {}, the backup is of {}: an older server may not read a newer one's files",
          node->name, node->version, backup.server_version));
    }
    if (node->stopped && !node->answered) {
      stopped.emplace_back(node->name);
    }
    if (node->wrong_identity) {
      replaced.emplace_back(node->name);
    }
  }
  if (!stopped.empty()) {
    out.push_back(
        fmt::format("{}: stopped now; started at the end, and left stopped if the "
                    "restore is undone",
                    fmt::join(stopped, ", ")));
  }
  if (!replaced.empty()) {
    out.push_back(fmt::format("{}: another database than the registered one is replaced, as asked",
                              fmt::join(replaced, ", ")));
  }
  if (order.whole_cluster() && order.snapshot.unregistered_voters > 0) {
    note_lost_voters(order.snapshot, out);
  }
}

}  // namespace

std::vector<NodeForecast> restore_forecast(const RestoreOrder& order) {
  std::vector<NodeForecast> out;
  out.reserve(order.nodes.size());
  for (const auto* node : order.nodes) {
    out.push_back({.node = node->name, .row = row_of(order, *node)});
  }
  return out;
}

std::vector<std::string> restore_notes(const RestoreOrder& order) {
  std::vector<std::string> out;
  if (order.whole_cluster()) {
    note_loss(order, out);
  }
  note_checks(order.facts->generation, out);
  note_nodes(order, out);
  out.emplace_back(
      "until the first restored server is started, a failure or a cancelled run reverts all nodes "
      "to their former files and starts the servers; from then on the run reverts nothing");
  if (order.whole_cluster()) {
    out.emplace_back("it does not wait for maintenance hours: an applied plan begins at once");
  }
  out.emplace_back(
      order.wanted.keep_old
          ? "the former files stay on each node in old-before-GENERATION until verger restore "
            "discard-old removes them"
          : "the former files are removed at the end, once the nodes are seen well");
  if (!order.whole_cluster()) {
    add_hours_note(order.snapshot, out);
  }
  return out;
}

}  // namespace verger::planner::detail
