#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "planner/plan.h"

namespace verger::planner {
namespace {

/// Writes the canonical JSON of a plan, members in the order of their names. Without a tree of
/// values: it takes forty times as long (docs/decisions/0023-one-of-each.md).
class PlanWriter {
 public:
  /// `whole`: with what does not count for the hash. With `digest` the text goes there piece by
  /// piece, and what is left of it is the result: a plan of a thousand nodes has megabytes of it.
  explicit PlanWriter(bool whole, Sha256* digest = nullptr) : whole_(whole), digest_(digest) {}

  std::string text_of(const Plan& plan) && {
    object("basis", plan.basis.nodes, "cluster", plan.cluster, "forecast", if_whole(plan.forecast),
           "hash", if_whole(plan.hash), "madeAt", if_whole(format_ticks(plan.made_at)), "notes",
           if_whole(plan.notes), "policy", to_json(plan.policy), "stages", plan.stages);
    return std::move(out_);
  }

 private:
  void write(const NodeForecast& node) {
    const auto if_known = [&](const std::int64_t& bytes) {
      return node.disk_free >= 0 ? &bytes : nullptr;
    };
    object("databaseBytes", if_known(node.database_bytes), "diskFree", if_known(node.disk_free),
           "diskNeeded", if_known(node.disk_needed), "node", node.node, "row", node.row);
  }
  void write(const BasisNode& node) {
    object("agentUrl", node.agent_url, "certificates", node.certificates, "instanceId",
           node.instance_id, "name", node.name, "role", node.role, "url", node.url, "version",
           node.version);
  }
  void write(const Stage& stage) {
    object("atomic", stage.atomic ? &stage.atomic : nullptr, "closing",
           stage.closing ? &stage.closing : nullptr, "deadlineMs", stage.deadline_ms, "groups",
           stage.groups, "id", stage.id, "ifPutOff", stage.if_deferred, "onFailure",
           to_string(stage.on_failure), "title", stage.title, "undoDeadlineMs",
           stage.undo_deadline_ms);
  }
  void write(const Step& step) {
    object("act", step.act, "attempts", step.attempts, "cost", step.cost, "expected",
           if_whole(step.expected), "gates", step.gates, "id", step.id, "kind", step.kind, "node",
           step.node, "observe", step.observe, "parameters", step.parameters, "reason", step.reason,
           "undo", step.undo);
    if (digest_ != nullptr && out_.size() >= kPiece) {
      digest_->update(as_bytes(out_));
      out_.clear();
    }
  }
  void write(const StepCost& cost) {
    object("leaderMove", cost.leader_move, "quorumMargin", cost.quorum_margin);
  }
  void write(const DurationRange& range) { object("highMs", range.high_ms, "lowMs", range.low_ms); }
  void write(const Gate& gate) { object("limit", gate.limit, "name", gate.name_in_plan()); }

  void write(const Json& value) { value.write(out_); }
  void write(const Json::Object& members) {
    char before = '{';
    for (const auto& [name, value] : members) {
      out_ += before;
      before = ',';
      write(name);
      out_ += ':';
      write(value);
    }
    out_ += members.empty() ? "{}" : "}";
  }
  void write(std::string_view text) { append_json_quoted(out_, text); }
  void write(const std::string& text) { append_json_quoted(out_, text); }
  void write(std::int64_t number) { append_json_number(out_, number); }
  void write(std::int32_t number) { append_json_number(out_, number); }
  void write(bool value) { out_ += value ? "true" : "false"; }
  template <class T>
  void write(const std::vector<T>& values) {
    out_ += '[';
    for (const auto& value : values) {
      if (&value != values.data()) {
        out_ += ',';
      }
      write(value);
    }
    out_ += ']';
  }

  template <class T>
  const T* if_whole(const T& value) const {
    return whole_ ? &value : nullptr;
  }
  /// Names and values in turns; a member whose value is a null pointer is left out. One is there.
  template <class... Rest>
  void object(const Rest&... rest) {
    members('{', rest...);
    out_ += '}';
  }
  void members(char /*before*/) {}
  template <class T, class... Rest>
  void members(char before, std::string_view name, const T& value, const Rest&... rest) {
    out_ += before;
    out_ += '"';
    out_ += name;
    out_ += "\":";
    write(value);
    members(',', rest...);
  }
  template <class T, class... Rest>
  void members(char before, std::string_view name, const T* value, const Rest&... rest) {
    if (value != nullptr) {
      members(before, name, *value, rest...);
    } else {
      members(before, rest...);
    }
  }

  static constexpr std::size_t kPiece = std::size_t{32} << 10U;

  bool whole_;
  Sha256* digest_;
  std::string out_;
};

}  // namespace

std::string hashed_text(const Plan& plan) { return PlanWriter(/*whole=*/false).text_of(plan); }
std::string text_of(const Plan& plan) { return PlanWriter(/*whole=*/true).text_of(plan); }
std::string hash_of(const Plan& plan) {
  Sha256 digest;
  digest.update(as_bytes(PlanWriter(/*whole=*/false, &digest).text_of(plan)));
  return to_hex(digest.finish());
}

}  // namespace verger::planner
