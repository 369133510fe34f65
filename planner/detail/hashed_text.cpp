#include "planner/detail/hashed_text.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/json_escape.h"

namespace verger::planner::detail {
namespace {

constexpr std::size_t kPiece = std::size_t{32} << 10U;
constexpr std::size_t kFirstRoom = std::size_t{4} << 10U;  ///< enough for a plan of a few nodes
constexpr std::size_t kMostKnownGates = 8;

}  // namespace

std::string HashedText::of(const Plan& plan) {
  out_.resize(kFirstRoom);
  plain("{\"basis\":");
  list(plan.basis.nodes, [this](const BasisNode& node) { write(node); });
  text(",\"cluster\":", plan.cluster);
  if (whole_) {
    plain(",\"forecast\":");
    list(plan.forecast, [this](const auto& each) {
      plain("{");
      if (each.disk_free >= 0) {
        number("\"databaseBytes\":", each.database_bytes);
        number(",\"diskFree\":", each.disk_free);
        number(",\"diskNeeded\":", each.disk_needed);
        plain(",");
      }
      text("\"node\":", each.node);
      text(",\"row\":", each.row);
      plain("}");
    });
    text(",\"hash\":", plan.hash);
    text(",\"madeAt\":", format_ticks(plan.made_at));
    plain(",\"notes\":");
    list(plan.notes, [this](const std::string& note) { text("", note); });
  }
  plain(",\"policy\":");
  plain(to_json(plan.policy).text());
  plain(",\"stages\":");
  list(plan.stages, [this](const Stage& stage) { write(stage); });
  plain("}");
  out_.resize(used_);
  return std::move(out_);
}

template <class T, class Write>
void HashedText::list(const std::vector<T>& values, const Write& write_one) {
  plain("[");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) {
      plain(",");
    }
    write_one(values[i]);
  }
  plain("]");
}

void HashedText::make_room(std::size_t size) {
  if (out_.size() - used_ < size) {
    out_.resize(2 * out_.size() + size);
  }
}

void HashedText::plain(std::string_view text) {
  make_room(text.size());
  std::memcpy(out_.data() + used_, text.data(), text.size());
  used_ += text.size();
}

void HashedText::text(std::string_view before, std::string_view value) {
  if (plain_length(value) != value.size()) {
    plain(before);
    plain(json_quoted(value));
    return;
  }
  make_room(before.size() + value.size() + 2);
  auto* at = std::ranges::copy(before, out_.data() + used_).out;
  *at++ = '"';
  at = std::ranges::copy(value, at).out;
  *at = '"';
  used_ += before.size() + value.size() + 2;
}

void HashedText::number(std::string_view before, std::int64_t value) {
  plain(before);
  const fmt::format_int digits(value);
  plain({digits.data(), digits.size()});
}

void HashedText::hand_on() {
  if (digest_ != nullptr && used_ >= kPiece) {
    digest_->update(as_bytes(std::string_view(out_).substr(0, used_)));
    used_ = 0;
  }
}

void HashedText::write(const BasisNode& node) {
  text("{\"agentUrl\":", node.agent_url);
  plain(",\"certificates\":");
  list(node.certificates, [this](const std::string& serial) { text("", serial); });
  text(",\"instanceId\":", node.instance_id);
  text(",\"name\":", node.name);
  text(",\"role\":", node.role);
  text(",\"url\":", node.url);
  text(",\"version\":", node.version);
  plain("}");
  hand_on();
}

void HashedText::write(const Stage& stage) {
  plain(stage.closing ? "{\"closing\":true," : "{");
  number("\"deadlineMs\":", stage.deadline_ms);
  plain(",\"groups\":");
  list(stage.groups,
       [this](const Group& group) { list(group, [this](const Step& step) { write(step); }); });
  text(",\"id\":", stage.id);
  text(",\"ifPutOff\":", stage.if_deferred);
  text(",\"onFailure\":", to_string(stage.on_failure));
  text(",\"title\":", stage.title);
  number(",\"undoDeadlineMs\":", stage.undo_deadline_ms);
  plain("}");
}

void HashedText::write(const Step& step) {
  text("{\"act\":", step.act);
  number(",\"attempts\":", step.attempts);
  plain(",\"cost\":{\"leaderMove\":");
  plain(step.cost.leader_move ? "true" : "false");
  number(",\"quorumMargin\":", step.cost.quorum_margin);
  if (whole_) {
    number("},\"expected\":{\"highMs\":", step.expected.high_ms);
    number(",\"lowMs\":", step.expected.low_ms);
  }
  plain("},\"gates\":");
  write_gates(step.gates);
  text(",\"id\":", step.id);
  text(",\"kind\":", step.kind);
  text(",\"node\":", step.node);
  text(",\"observe\":", step.observe);
  std::string_view before = ",\"parameters\":{";
  for (const auto& [name, value] : step.parameters) {
    text(before, name);
    before = ",";
    if (const auto* truth = value.as_bool()) {
      plain(*truth ? ":true" : ":false");
    } else if (const auto* integer = value.as_int()) {
      number(":", *integer);
    } else {
      plain(":");
      plain(value.text());
    }
  }
  plain(step.parameters.empty() ? ",\"parameters\":{" : "");
  text("},\"reason\":", step.reason);
  text(",\"undo\":", step.undo);
  plain("}");
  hand_on();
}

void HashedText::write_gates(const std::vector<Gate>& gates) {
  const auto known = std::ranges::find_if(
      known_gates_, [&](const KnownGates& one) { return *one.gates == gates; });
  if (known != known_gates_.end()) {
    plain(known->text);
    return;
  }
  const auto begin = used_;
  list(gates, [this](const Gate& gate) {
    number("{\"limit\":", gate.limit);
    text(",\"name\":", gate.name);
    plain("}");
  });
  if (known_gates_.size() < kMostKnownGates) {
    known_gates_.push_back({&gates, out_.substr(begin, used_ - begin)});
  }
}

}  // namespace verger::planner::detail
