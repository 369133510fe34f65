#include "planner/detail/plan_scavenge.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "engine/base/clock.h"
#include "planner/gates.h"

namespace verger::planner::detail {
namespace {

/// Followers whose lag is in the same bucket are ordered by name, so that a busy cluster gives the
/// same plan twice.
constexpr std::int64_t kLagBucket = std::int64_t{1} << 20U;

std::int64_t lag_bucket(const NodeSnapshot* leader, const NodeSnapshot& node) {
  if (leader == nullptr || leader->writer_checkpoint < 0 || node.writer_checkpoint < 0) {
    return 0;
  }
  return std::max<std::int64_t>(leader->writer_checkpoint - node.writer_checkpoint, 0) / kLagBucket;
}

/// Gates that say the same of the cluster whichever node the step is about.
bool is_cluster_wide(const Gate& gate) {
  return gate.name != "quorum-margin" && gate.name != "disk" && gate.name != "voters-alive";
}

/// A group of one; an initializer list would copy the step.
Group alone(Step step) {
  Group group;
  group.push_back(std::move(step));
  return group;
}

class Planning {
 public:
  Planning(const ClusterSnapshot& snapshot, const Policy& policy, const History& history)
      : snapshot_(snapshot),
        policy_(policy),
        scavenge_(policy.scavenge),
        history_(history),
        latest_(snapshot.latest_point()),
        voters_(snapshot.voters()) {}

  std::expected<Plan, std::vector<Refusal>> run() {
    check_policy();
    choose_nodes();
    check_versions();
    check_gates();
    if (!refusals_.empty()) {
      return std::unexpected(sorted_refusals());
    }
    choose_creator();
    build();
    return std::move(plan_);
  }

 private:
  void refuse(std::string code, std::string node, std::string message, std::string hint) {
    refusals_.push_back(
        Refusal{std::move(code), std::move(node), std::move(message), std::move(hint)});
  }

  void check_policy() {
    if (scavenge_.threads < 1 || scavenge_.threads > 4) {
      refuse("policy-invalid", "", fmt::format("threads is {}", scavenge_.threads),
             "1 to 4; a server fails with more");
    }
    if (scavenge_.throttle_percent < 1 || scavenge_.throttle_percent > 100) {
      refuse("policy-invalid", "",
             fmt::format("throttle percent is {}", scavenge_.throttle_percent), "1 to 100");
    } else if (scavenge_.throttle_percent != 100 && scavenge_.threads > 1) {
      refuse("policy-invalid", "", "a scavenge with several threads cannot be throttled",
             "use one thread, or 100 percent");
    }
    for (const auto& [who, threads, throttle] :
         {std::tuple("leader", scavenge_.leader_threads, scavenge_.leader_throttle_percent),
          std::tuple("replica", scavenge_.replica_threads, scavenge_.replica_throttle_percent)}) {
      if (threads == 0 && throttle == 0) {
        continue;  // as the others
      }
      const auto t = threads == 0 ? scavenge_.threads : threads;
      const auto p = throttle == 0 ? scavenge_.throttle_percent : throttle;
      if (threads < 0 || threads > 4 || throttle < 0 || throttle > 100 || (t > 1 && p != 100)) {
        refuse("policy-invalid", "",
               fmt::format("parameters of the role {}: {} threads at {} percent", who, t, p),
               "1 to 4 threads; several of them cannot be throttled");
      }
    }
    if (scavenge_.resign_attempts < 1 || scavenge_.resign_attempts > 3) {
      refuse("policy-invalid", "", fmt::format("resign attempts is {}", scavenge_.resign_attempts),
             "1 to 3");
    }
    if (scavenge_.scavenge_attempts < 1) {
      refuse("policy-invalid", "",
             fmt::format("scavenge attempts is {}", scavenge_.scavenge_attempts), "1 or more");
    }
    if (scavenge_.lag_limit_bytes < 0 || scavenge_.disk_reserve_bytes < 0 ||
        scavenge_.election_settle_ms < 0 || scavenge_.leader_hold_ms < 0 ||
        scavenge_.scavenge_deadline_ms <= 0 || scavenge_.move_deadline_ms <= 0 ||
        scavenge_.digest_deadline_ms <= 0 || scavenge_.undo_deadline_ms <= 0 ||
        scavenge_.gate_deadline_ms <= 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  /// Voters that follow, then replicas, the leader last.
  void choose_nodes() {
    const auto* leader = snapshot_.leader();
    for (const auto& node : snapshot_.nodes) {
      if (node.read_only_replica) {
        if (scavenge_.read_only_replicas == ReplicaRule::kInclude) {
          replicas_.push_back(&node);
        }
      } else if (&node == leader) {
        leader_ = &node;
      } else {
        followers_.push_back(&node);
      }
    }
    const auto order = [leader](const NodeSnapshot* a, const NodeSnapshot* b) {
      return std::tuple(lag_bucket(leader, *a), std::string_view(a->name)) <
             std::tuple(lag_bucket(leader, *b), std::string_view(b->name));
    };
    std::ranges::sort(followers_, order);
    std::ranges::sort(replicas_, order);
    if (snapshot_.nodes.empty()) {
      refuse("no-nodes", "", "the cluster has no nodes", "register it with its nodes");
    }
    if (scavenge_.strategy == Strategy::kFollowersOnly && followers_.empty() &&
        leader_ != nullptr) {
      refuse("no-followers", "", "the strategy is followers-only and there is no follower",
             "use the strategy rolling");
    }
  }

  [[nodiscard]] bool includes_leader() const {
    return leader_ != nullptr && scavenge_.strategy != Strategy::kFollowersOnly;
  }
  [[nodiscard]] bool moves_leader() const {
    return includes_leader() && scavenge_.leader == LeaderRule::kResign && !followers_.empty();
  }

  [[nodiscard]] std::vector<const NodeSnapshot*> included() const {
    auto out = followers_;
    out.insert(out.end(), replicas_.begin(), replicas_.end());
    if (includes_leader()) {
      out.push_back(leader_);
    }
    return out;
  }

  void check_versions() {
    for (const auto* node : included()) {
      int major = 0;
      int minor = 0;
      const char* end = node->version.data() + node->version.size();
      const auto first = std::from_chars(node->version.data(), end, major);
      const bool read = first.ec == std::errc() && first.ptr != end && *first.ptr == '.' &&
                        std::from_chars(first.ptr + 1, end, minor).ec == std::errc();
      if (!node->answered) {
        continue;  // voters-alive says so
      }
      if (!read) {
        refuse("version-unknown", node->name,
               fmt::format("its version \"{}\" cannot be read", node->version),
               "check that the URL is a node's");
      } else if (std::tuple(major, minor) < std::tuple(22, 10)) {
        refuse("version-too-old", node->name,
               fmt::format("version {} has no scavenge points", node->version),
               "22.10 or newer is needed for a scavenge of all nodes to one point");
      }
    }
  }

  [[nodiscard]] std::vector<Gate> scavenge_gates(const NodeSnapshot& node) const {
    std::vector<Gate> gates{
        {"right-cluster", 0},     {"agents-answer", 0},    {"voters-alive", 0},
        {"one-leader", 0},        {"quorum-margin", 0},    {"lag-below", scavenge_.lag_limit_bytes},
        {"auto-scavenge-off", 0}, {"nobody-scavenges", 0}, {"disk", scavenge_.disk_reserve_bytes}};
    if (scavenge_.foreign == ForeignRule::kAdopt) {
      std::ranges::find(gates, "nobody-scavenges", &Gate::name)->name = "others-idle";
    }
    if (!node.read_only_replica && moves_leader()) {
      gates.push_back({"not-leader", 0});
    }
    gates.push_back({"hours", 0});
    return gates;
  }

  [[nodiscard]] std::vector<Gate> move_gates() const {
    return {{"right-cluster", 0}, {"agents-answer", 0}, {"voters-alive", 0},
            {"one-leader", 0},    {"quorum-margin", 0}, {"lag-below", scavenge_.lag_limit_bytes},
            {"hours", 0}};
  }

  void check_gates() {
    std::set<std::tuple<std::string, std::string, std::string>> seen;
    auto nodes = included();
    if (nodes.empty() && !snapshot_.nodes.empty()) {
      nodes.push_back(&snapshot_.nodes.front());
    }
    // One voter may be missing everywhere if two more than the quorum need are up.
    const auto up = static_cast<std::size_t>(
        std::ranges::count_if(snapshot_.nodes, [](const NodeSnapshot& node) {
          return !node.read_only_replica && node.answered && node.alive &&
                 node.role != Role::kOther;
        }));
    const bool margin_everywhere = up > voters_ / 2 + 1;
    for (const auto* node : nodes) {
      for (const auto& gate : scavenge_gates(*node)) {
        if (gate.name == "not-leader" ||   // the order takes care of it
            gate.name == "hours" ||        // a plan may be made at any time
            gate.name == "others-idle" ||  // what runs now is adopted at its turn
            (is_cluster_wide(gate) && node != nodes.front()) ||
            (gate.name == "quorum-margin" && margin_everywhere) ||
            (gate.name == "voters-alive" && node != nodes.front() && !node->read_only_replica)) {
          continue;
        }
        for (auto& state : evaluate(gate, snapshot_, node)) {
          if (state.verdict != GateVerdict::kOpen &&
              seen.emplace(state.code, state.node, state.reason).second) {
            refuse(state.code, state.node, state.reason, state.hint);
          }
        }
      }
    }
  }

  std::vector<Refusal> sorted_refusals() {
    std::ranges::sort(refusals_, {},
                      [](const Refusal& r) { return std::tie(r.node, r.code, r.message); });
    const auto repeated = std::ranges::unique(refusals_);
    refusals_.erase(repeated.begin(), repeated.end());
    return std::move(refusals_);
  }

  /// True where the node is seen to be done with the log's latest point, or where there is none.
  [[nodiscard]] bool done_with_latest(const NodeSnapshot& node) const {
    if (!node.agent || node.agent->unfinished) {
      return false;
    }
    return !latest_ ||
           (node.agent->last_finished && node.agent->last_finished->number >= latest_->number);
  }

  /// Somebody who may create the new point at once; seen (by an agent) goes before hoped.
  void choose_creator() {
    auto& candidates = followers_.empty() ? replicas_ : followers_;
    if (candidates.empty()) {
      creator_ = leader_;
      return;
    }
    auto best =
        std::ranges::find_if(candidates, [this](const auto* n) { return done_with_latest(*n); });
    if (best == candidates.end()) {
      best = std::ranges::find_if(candidates, [](const auto* n) { return n->agent.has_value(); });
    }
    if (best == candidates.end()) {
      best = candidates.begin();
    }
    std::rotate(candidates.begin(), best, best + 1);
    creator_ = candidates.front();
  }

  [[nodiscard]] DurationRange expected(const NodeSnapshot& node) const {
    DurationRange range;
    std::vector<std::int64_t> times;
    for (const auto& past : history_.durations) {
      if (past.kind == "scavenge" && past.node == node.name && past.duration_ms > 0) {
        times.push_back(past.duration_ms);
      }
    }
    std::ranges::sort(times);
    if (!times.empty()) {
      // From P5 to P95; where fewer than twenty are known, to a quarter above the longest.
      range.low_ms = times[times.size() / 20];
      range.high_ms = times.size() >= 20 ? times[(times.size() * 95 - 1) / 100]
                                         : times.back() + times.back() / 4;
    } else if (node.agent && node.agent->database_bytes > 0) {
      // Without a history: between reading everything at 200 MB/s and rewriting it at 5 MB/s.
      range.low_ms = node.agent->database_bytes / 200'000;
      range.high_ms = node.agent->database_bytes / 5'000;
    }
    return range;
  }

  [[nodiscard]] Step scavenge_step(const NodeSnapshot& node, std::string_view prefix,
                                   std::string_view target, std::int64_t point, bool sync_only,
                                   std::string reason) const {
    Step step;
    step.id = fmt::format("{}-{}", prefix, node.name);
    step.kind = "scavenge";
    step.node = node.name;
    auto& parameters = step.parameters;
    parameters.emplace("target", target);
    parameters.emplace("syncOnly", sync_only);
    const auto or_default = [](std::int32_t own, std::int32_t common) {
      return own == 0 ? common : own;
    };
    const bool leads = &node == leader_;
    const bool replica = node.read_only_replica;
    parameters.emplace("threads", or_default(leads     ? scavenge_.leader_threads
                                             : replica ? scavenge_.replica_threads
                                                       : 0,
                                             scavenge_.threads));
    parameters.emplace("threshold", scavenge_.threshold);
    parameters.emplace("throttlePercent", or_default(leads     ? scavenge_.leader_throttle_percent
                                                     : replica ? scavenge_.replica_throttle_percent
                                                               : 0,
                                                     scavenge_.throttle_percent));
    parameters.emplace("agent", node.has_agent());
    parameters.emplace("onPause", to_string(scavenge_.on_pause));
    parameters.emplace("onClose", to_string(scavenge_.on_close));
    if (scavenge_.foreign == ForeignRule::kAdopt) {
      parameters.emplace("foreign", to_string(scavenge_.foreign));
    }
    if (point >= 0) {
      step.parameters["point"] = point;
    }
    step.gates = scavenge_gates(node);
    step.act = sync_only
                   ? fmt::format("start a scavenge on {} with syncOnly=true", node.name)
                   : fmt::format("start a scavenge on {} that creates a scavenge point", node.name);
    step.observe =
        node.has_agent()
            ? "the agent sees the node's scavenge state done with the point, nothing runs"
            : "the node's scavenge log ends in Success without error, nothing runs";
    step.reason = std::move(reason);
    step.attempts = scavenge_.scavenge_attempts;
    step.expected = expected(node);
    step.cost = StepCost{false, margin(node)};
    return step;
  }

  [[nodiscard]] std::int32_t margin(const NodeSnapshot& node) const {
    const auto others = voters_ - (node.read_only_replica ? 0U : 1U);
    return static_cast<std::int32_t>(others) - static_cast<std::int32_t>(voters_ / 2 + 1);
  }

  Stage scavenge_stage(const NodeSnapshot& node) {
    Stage stage;
    stage.id = fmt::format("scavenge-{}", node.name);
    stage.title = fmt::format("scavenge {} ({})", node.name, to_string(node.role));
    stage.deadline_ms = scavenge_.scavenge_deadline_ms;
    stage.undo_deadline_ms = scavenge_.undo_deadline_ms;
    std::string row;
    stage.groups.reserve(3);
    const auto add = [&stage](Step step) { stage.groups.push_back(alone(std::move(step))); };
    const bool creates = &node == creator_;

    if (node.agent) {
      const auto& facts = *node.agent;
      if (facts.unfinished) {
        const auto number = facts.unfinished->point.number;
        add(scavenge_step(node, "finish", "number", number, true,
                          fmt::format("its scavenge to point {} is unfinished and would be resumed "
                                      "by any start",
                                      number)));
        row +=
            fmt::format("row 1 (resumes point {} at {}), then ", number, facts.unfinished->stage);
      }
      const auto reached = facts.unfinished      ? facts.unfinished->point.number
                           : facts.last_finished ? facts.last_finished->number
                                                 : -1;
      const bool behind = latest_ && reached < latest_->number;
      if (creates && behind) {
        add(scavenge_step(node, "adopt", "number", latest_->number, true,
                          fmt::format("only a node that is done with point {}, the log's latest, "
                                      "creates a new one",
                                      latest_->number)));
        row += fmt::format("row {} (adopts point {}), then ", reached < 0 ? 4 : 5, latest_->number);
      }
      if (creates) {
        row += latest_               ? "row 6: creates the new point"
               : facts.last_finished ? "row 8: creates the new point"
                                     : "row 2: creates the new point";
      } else {
        row += reached < 0 ? "row 4: takes the new point" : "row 5: takes the new point";
      }
    } else {
      add(scavenge_step(node, "finish", "open", -1, true,
                        "there is no agent to see whether a scavenge is unfinished; one that is "
                        "would be resumed by any start"));
      if (creates) {
        add(scavenge_step(node, "adopt", "open", -1, true,
                          "there is no agent to see whether the log has an unreached point; one "
                          "that is there would be taken instead of a new one"));
      }
      row = creates ? "cannot be seen without an agent; rows 1, 4, 5 are cleared by starts with "
                      "syncOnly first, then row 2, 6 or 8"
                    : "cannot be seen without an agent; row 1 or 7 first, then row 4 or 5";
    }

    if (creates) {
      add(scavenge_step(node, "scavenge", "new", -1, false,
                        &node == leader_
                            ? "it is the only voter, so it creates the point that the run is about"
                            : "the first follower creates the point that all nodes share"));
    } else {
      add(scavenge_step(node, "scavenge", "shared", -1, true,
                        &node == leader_         ? "the leader comes last, as a follower"
                        : node.read_only_replica ? "replicas follow the voters"
                                                 : "follows to the shared point"));
    }
    plan_.forecast.push_back(NodeForecast{node.name, std::move(row)});
    return stage;
  }

  [[nodiscard]] Stage move_stage(const NodeSnapshot& node, std::string if_put_off) const {
    Stage stage;
    stage.id = fmt::format("move-{}", node.name);
    stage.title = fmt::format("move the leadership away from {}", node.name);
    stage.deadline_ms = scavenge_.move_deadline_ms;
    stage.undo_deadline_ms = scavenge_.undo_deadline_ms;
    stage.on_failure = FailureRule::kUndoAll;
    stage.if_put_off = std::move(if_put_off);

    // -1 is what an earlier run may have left behind; nobody wants it back.
    const std::int32_t original = node.priority == -1 ? 0 : node.priority;
    Step lower;
    lower.id = fmt::format("lower-{}", node.name);
    lower.kind = "set_priority";
    lower.node = node.name;
    lower.parameters.emplace("priority", -1);
    lower.parameters.emplace("restore", original);
    lower.parameters.emplace("onlyIfLeader", true);
    lower.parameters.emplace("agent", node.has_agent());
    lower.gates = move_gates();
    lower.act = fmt::format("set the priority of {} to -1", node.name);
    lower.observe = "gossip shows the priority";
    lower.undo = fmt::format("set it back to {}", original);
    lower.reason = "with equal priorities the node that resigns may win again";
    lower.attempts = 3;
    lower.expected = {1'000, 5'000};
    lower.cost = StepCost{false, margin(node)};

    Step resign;
    resign.id = fmt::format("resign-{}", node.name);
    resign.kind = "resign";
    resign.node = node.name;
    resign.parameters.emplace("holdMs", scavenge_.leader_hold_ms);
    resign.parameters.emplace("settleMs", scavenge_.election_settle_ms);
    resign.parameters.emplace("agent", node.has_agent());
    resign.gates = move_gates();
    resign.gates.push_back({"nobody-scavenges", 0});
    resign.gates.push_back({"leader-settled", scavenge_.election_settle_ms});
    resign.act = fmt::format("make {} resign", node.name);
    resign.observe = fmt::format("all voters show another leader, unchanged for {} ms",
                                 scavenge_.leader_hold_ms);
    resign.reason = "the node that serves the writes is not scavenged";
    resign.attempts = scavenge_.resign_attempts;
    resign.expected = {scavenge_.leader_hold_ms + 300, scavenge_.leader_hold_ms + 60'000};
    resign.cost = StepCost{true, margin(node)};

    Step restore;
    restore.id = fmt::format("restore-{}", node.name);
    restore.kind = "set_priority";
    restore.node = node.name;
    restore.parameters.emplace("priority", original);
    restore.parameters.emplace("restore", original);
    restore.parameters.emplace("onlyIfLeader", false);
    restore.parameters.emplace("agent", node.has_agent());
    restore.gates = {{"right-cluster", 0}};
    restore.act = fmt::format("set the priority of {} back to {}", node.name, original);
    restore.observe = "gossip shows the priority";
    restore.reason = "the run leaves the cluster as it was";
    restore.attempts = 3;
    restore.expected = {1'000, 5'000};

    stage.groups.reserve(3);
    stage.groups.push_back(alone(std::move(lower)));
    stage.groups.push_back(alone(std::move(resign)));
    stage.groups.push_back(alone(std::move(restore)));
    return stage;
  }

  void build() {
    plan_.stages.reserve(2 * included().size() + 3);
    plan_.cluster = snapshot_.cluster;
    plan_.policy = policy_;
    if (scavenge_.strategy == Strategy::kConcurrent) {
      build_concurrent();
    } else {
      build_one_by_one();
    }
    if (includes_leader()) {
      if (moves_leader()) {
        plan_.stages.push_back(move_stage(*leader_, ""));
      }
      plan_.stages.push_back(scavenge_stage(*leader_));
    }
    build_comparison();
    add_notes();
  }

  void add_notes() {
    if (!includes_leader()) {
      plan_.notes.push_back("the leader is left out; scavenge it later, or its log stays as it is");
    } else if (!moves_leader() && !followers_.empty()) {
      plan_.notes.push_back("the leader is scavenged while it leads, as the policy says");
    } else if (followers_.empty()) {
      plan_.notes.push_back("a single voter is scavenged while it leads");
    }
    if (snapshot_.hours && !snapshot_.hours->open) {
      plan_.notes.push_back(fmt::format(
          "closed now ({}); a run waits until {}", snapshot_.hours->reason,
          snapshot_.hours->until ? format_ticks(*snapshot_.hours->until) : "further notice"));
    }
  }

  /// One follower makes the point; then all others work side by side. Each of them keeps serving,
  /// so no voter is down, but all of them are busy.
  void build_concurrent() {
    std::vector<const NodeSnapshot*> others;
    for (const auto* list : {&followers_, &replicas_}) {
      for (const auto* node : *list) {
        if (node != creator_) {
          others.push_back(node);
        }
      }
    }
    if (creator_ != leader_) {
      plan_.stages.push_back(scavenge_stage(*creator_));
      build_record();
    }
    if (others.empty()) {
      return;
    }
    Stage together;
    together.id = "scavenge-others";
    together.title = fmt::format("scavenge {} other nodes at once", others.size());
    together.deadline_ms = scavenge_.scavenge_deadline_ms;
    together.undo_deadline_ms = scavenge_.undo_deadline_ms;
    Group before;
    Group main;
    for (const auto* node : others) {
      for (auto& group : scavenge_stage(*node).groups) {
        for (auto& step : group) {
          // The others' scavenges are this run's own.
          for (auto& gate : step.gates) {
            if (gate.name == "nobody-scavenges" || gate.name == "others-idle") {
              gate.name = scavenge_.foreign == ForeignRule::kAdopt ? "agents-answer" : "idle";
            }
          }
          std::erase_if(step.gates, [](const Gate& gate) { return gate.name == "not-leader"; });
          (step.id.starts_with("scavenge-") ? main : before).push_back(std::move(step));
        }
      }
    }
    if (!before.empty()) {
      together.groups.push_back(std::move(before));
    }
    together.groups.push_back(std::move(main));
    plan_.stages.push_back(std::move(together));
    plan_.notes.push_back("all nodes but the first and the leader are busy at the same time");
  }

  void build_one_by_one() {
    for (const auto* node : followers_) {
      if (moves_leader()) {
        plan_.stages.push_back(move_stage(*node, fmt::format("scavenge-{}", node->name)));
      }
      plan_.stages.push_back(scavenge_stage(*node));
      if (node == creator_) {
        build_record();
      }
    }
    for (const auto* node : replicas_) {
      plan_.stages.push_back(scavenge_stage(*node));
      if (node == creator_) {
        build_record();
      }
    }
  }

  /// A node that is scavenged after the creator of the point tells what could be read before.
  void build_record() {
    if (!scavenge_.compare_digests) {
      return;
    }
    const NodeSnapshot* witness = nullptr;
    for (const auto* node : included()) {
      if (node != creator_ && node->has_agent()) {
        witness = node;
      }
    }
    if (witness == nullptr || !creator_->has_agent()) {
      return;
    }
    Step step;
    step.id = fmt::format("record-{}", witness->name);
    step.kind = "record_digest";
    step.node = witness->name;
    step.gates = {{"right-cluster", 0}, {"agents-answer", 0}};
    step.act = "ask its agent for the digest of its log up to the new point";
    step.observe = "the agent answered while the node had not reached the point";
    step.reason = "what can be read before it is scavenged is compared with what can be read after";
    step.attempts = 3;
    Stage stage;
    stage.id = "record";
    stage.title = fmt::format("record what {} holds", witness->name);
    stage.deadline_ms = scavenge_.digest_deadline_ms;
    stage.undo_deadline_ms = scavenge_.undo_deadline_ms;
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
  }

  void build_comparison() {
    const auto nodes = included();
    Json::Array names;
    std::vector<std::string> blind;
    for (const auto* node : nodes) {
      if (node->has_agent()) {
        names.emplace_back(node->name);
      } else {
        blind.push_back(node->name);
      }
    }
    if (!blind.empty()) {
      plan_.notes.push_back(
          fmt::format("no agent on {}: which scavenge point it reaches is not seen, its digest is "
                      "not compared, and older controllers are not fenced off there",
                      fmt::join(blind, ", ")));
    }
    if (!scavenge_.compare_digests || names.size() < 2) {
      return;
    }
    Stage stage;
    stage.id = "compare";
    stage.title = "compare the nodes";
    stage.deadline_ms = scavenge_.digest_deadline_ms;
    stage.undo_deadline_ms = scavenge_.undo_deadline_ms;
    Step step;
    step.id = "compare-digests";
    step.kind = "compare_digests";
    step.parameters = Json::Object{{"nodes", std::move(names)}, {"point", "shared"}};
    step.gates = {{"right-cluster", 0}, {"agents-answer", 0}};
    step.act = "ask each agent for the digest of its node's log up to the shared point";
    step.observe = "all agents answered; the first differing chunk is named where they differ";
    step.reason = "what the scavenge left must be the same everywhere";
    step.attempts = 3;
    stage.groups.push_back(alone(std::move(step)));
    plan_.stages.push_back(std::move(stage));
  }

  const ClusterSnapshot& snapshot_;
  const Policy& policy_;
  const ScavengePolicy& scavenge_;
  const History& history_;
  const std::optional<Point> latest_;
  const std::size_t voters_;
  std::vector<const NodeSnapshot*> followers_;
  std::vector<const NodeSnapshot*> replicas_;
  const NodeSnapshot* leader_ = nullptr;
  const NodeSnapshot* creator_ = nullptr;
  std::vector<Refusal> refusals_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_scavenge(const ClusterSnapshot& snapshot,
                                                        const Policy& policy,
                                                        const History& history) {
  return Planning(snapshot, policy, history).run();
}

}  // namespace verger::planner::detail
