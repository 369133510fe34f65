#include <algorithm>
#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/operations.h"

namespace verger::planner::detail {
namespace {

void scavenge_free(const Gate& gate, const NodeSnapshot& node, States& out) {
  if (!is_up(node)) {
    return;
  }
  if (!node.scavenge_running) {
    out.push_back(
        closed(gate.name, "scavenge-unknown", node.name,
               node.problem.empty()
                   ? std::string("whether a scavenge runs there cannot be seen")
                   : fmt::format("whether a scavenge runs there cannot be seen: {}", node.problem),
               "check the credentials and that its admin routes are on"));
  } else if (*node.scavenge_running) {
    out.push_back(measured(closed(gate.name, "scavenge-running", node.name,
                                  fmt::format("scavenge {} runs there", node.running.scavenge_id),
                                  "wait until it ends, or stop it"),
                           "1 scavenge", "none"));
  }
}

void none_runs(const Look& look, States& out) {
  if (look.wants_value(out)) {
    out.push_back(opened(look, "none", "none"));
  }
}

}  // namespace

void no_scavenge_running(const Look& look, States& out) {
  for (const auto& node : look.snapshot.nodes) {
    scavenge_free(look.gate, node, out);
  }
  none_runs(look, out);
}

void no_scavenge_elsewhere(const Look& look, States& out) {
  for (const auto& node : look.snapshot.nodes) {
    if (&node != look.node) {
      scavenge_free(look.gate, node, out);
    }
  }
  none_runs(look, out);
}

void no_scavenge_on_node(const Look& look, States& out) {
  if (look.node != nullptr) {
    scavenge_free(look.gate, *look.node, out);
  }
  none_runs(look, out);
}

void auto_scavenge_off(const Look& look, States& out) {
  const NodeSnapshot* scheduled = nullptr;  // and paused
  for (const auto& node : look.snapshot.nodes) {
    bool off = false;
    switch (node.auto_scavenge) {
      case AutoScavenge::kAbsent:
      case AutoScavenge::kNotConfigured:
      case AutoScavenge::kPaused:
        off = true;
        break;
      case AutoScavenge::kUnknown:
        // It came with 24.10; older servers cannot have it.
        off = !is_up(node) || version_number(node.version).value_or(0) < 2410;
        break;
      case AutoScavenge::kWaiting:
      case AutoScavenge::kInProgress:
      case AutoScavenge::kPausing:
        off = false;
        break;
    }
    if (!off) {
      out.push_back(measured(
          closed(look.gate.name, "auto-scavenge-active", node.name,
                 fmt::format("the server's own auto-scavenge is {}", to_string(node.auto_scavenge)),
                 "let the policy pause it for the run (auto_scavenge: pause), or pause it by hand "
                 "(POST "
                 "/auto-scavenge/pause)"),
          std::string(to_string(node.auto_scavenge)), "off"));
    } else if (node.auto_scavenge == AutoScavenge::kPaused) {
      scheduled = &node;
    }
  }
  if (look.wants_value(out) && scheduled != nullptr) {
    out.push_back(
        opened(look, std::string(to_string(scheduled->auto_scavenge)), "off", scheduled->name));
  } else if (look.wants_value(out)) {
    out.push_back(opened(look, "off", "off"));
  }
}

void no_other_work(const Look& look, States& out) {
  for (const auto& node : look.snapshot.nodes) {
    for (const auto& work : node.agent_work) {
      const auto* kind = find_agent_kind(work.kind);
      if (kind == nullptr || kind->keeps_others_out) {
        out.push_back(measured(closed(look.gate.name, work.kind + "-running", node.name,
                                      fmt::format("its agent is at a {} ({})", work.kind, work.id),
                                      "wait until it ends"),
                               work.kind, "none"));
      }
    }
  }
  none_runs(look, out);
}

void index_idle(const Look& look, States& out) {
  const auto* node = look.node;
  if (node != nullptr && is_up(*node) && !node->index_merging) {
    out.push_back(not_seen(look.gate.name, node->name,
                           "whether its index is being merged cannot be seen: it has no /metrics, "
                           "or they do not tell"));
    return;
  }
  if (node != nullptr && is_up(*node) && *node->index_merging) {
    out.push_back(measured(closed(look.gate.name, "index-merging", node->name,
                                  "its index is being merged", "wait until it ends"),
                           "merging", "idle"));
  } else if (look.values && node != nullptr && is_up(*node)) {
    out.push_back(opened(look, "idle", "idle", node->name));
  }
}

std::int64_t disk_needed(const AgentFacts& facts, std::int64_t reserve, std::int64_t threads) {
  // Each thread rewrites a chunk, as large as the largest file; a merge makes one whole chunk. What
  // it takes the place of goes only afterwards.
  return threads * std::max({facts.largest_chunk, facts.chunk_size, std::int64_t{0}}) + reserve;
}

namespace {

/// `need`: what is written beside what is there, of `what`. `tightest`: the open state of the disk
/// with the least to spare, which is `spare`.
struct Tightest {
  std::int64_t spare = 0;
  States state{};
};
void room(const Look& look, std::string_view disk, std::int64_t free, std::int64_t need,
          std::string_view what, Tightest& tightest, States& out) {
  if (free < 0) {
    return;  // what cannot be seen is not claimed
  }
  const auto spare = free - need - look.gate.limit;
  if (spare >= 0) {
    if (!look.values) {
      return;
    }
    if (tightest.state.empty() || spare < tightest.spare) {
      tightest = {spare,
                  {opened(look, fmt::format("{} free", human_bytes(free)),
                          human_bytes(need + look.gate.limit), look.node->name)}};
    }
    return;
  }
  const auto reason =
      need > 0 ? fmt::format("{} free on the disk of the {}; {} needs {}, and {} must stay free",
                             human_bytes(free), disk, what, human_bytes(need),
                             human_bytes(look.gate.limit))
               : fmt::format("{} free on the disk of the {}; {} must stay free", human_bytes(free),
                             disk, human_bytes(look.gate.limit));
  out.push_back(measured(closed(look.gate.name, "disk", look.node->name, reason,
                                fmt::format("make room on the disk of the node's {}", disk)),
                         fmt::format("{} free", human_bytes(free)),
                         human_bytes(need + look.gate.limit)));
}

}  // namespace

void disk(const Look& look, States& out) {
  if (look.node == nullptr || !look.node->agent) {
    return;  // the plan's notes say what is not seen without an agent
  }
  const auto& facts = *look.node->agent;
  if (facts.disk_free < 0) {
    out.push_back(
        not_seen(look.gate.name, look.node->name, "how much of its disk is free cannot be seen"));
    return;
  }
  const auto threads = std::max<std::int64_t>(look.threads, 1);
  Tightest tightest;
  room(look, "database", facts.disk_free, disk_needed(facts, 0, threads),
       threads == 1 ? std::string("the largest rewrite")
                    : fmt::format("rewriting {} chunks side by side", threads),
       tightest, out);
  const auto merges = facts.largest_merge > facts.largest_table;
  room(look, "index", facts.index_disk_free,
       std::max({facts.largest_merge, facts.largest_table, std::int64_t{0}}),
       merges ? "the largest merge of tables" : "the largest table", tightest, out);
  if (look.wants_value(out)) {
    out = std::move(tightest.state);
  }
}

void disk_reserve(const Look& look, States& out) {
  if (look.node != nullptr && look.node->agent) {
    Tightest tightest;
    room(look, "database", look.node->agent->disk_free, 0, "", tightest, out);
    if (look.wants_value(out)) {
      out = std::move(tightest.state);
    }
  }
}

}  // namespace verger::planner::detail
