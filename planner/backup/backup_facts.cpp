#include "planner/backup/backup_facts.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::planner {
namespace {

Error wrong_backup_fact(std::string_view name, std::string_view takes) {
  return {Errc::kInvalidArgument, fmt::format("facts of backups: {} takes {}", name, takes)};
}

/// Calls `each` with the name in JSON and each member, for writing and reading.
template <class Facts, class Each>
  requires std::is_same_v<std::remove_const_t<Facts>, BackupAgentFacts>
void members_of(Facts& agent, Each&& each) {
  each("compression", agent.compression);
  each("drillProblem", agent.drill_problem);
  each("freeBytes", agent.free_bytes);
  each("hint", agent.hint);
  each("location", agent.location);
  each("node", agent.node);
  each("problem", agent.problem);
  each("problemCode", agent.problem_code);
  each("repositoryId", agent.repository_id);
  each("snapshotProblem", agent.snapshot_problem);
}
template <class Facts, class Each>
  requires std::is_same_v<std::remove_const_t<Facts>, BackupGenerationFacts>
void members_of(Facts& generation, Each&& each) {
  each("cluster", generation.cluster);
  each("damage", generation.damage);
  each("drillPassed", generation.drill_passed);
  each("drilledAt", generation.drilled_at);
  each("endPosition", generation.end_position);
  each("epochId", generation.epoch_id);
  each("epochNumber", generation.epoch_number);
  each("finishedAt", generation.finished_at);
  each("id", generation.id);
  each("node", generation.node);
  each("parent", generation.parent);
  each("restoredBytes", generation.restored_bytes);
  each("startedAt", generation.started_at);
  each("writerPosition", generation.writer_position);
}

template <class Facts>
Json::Array written(const std::vector<Facts>& list) {
  Json::Array out;
  for (const auto& each : list) {
    Json::Object object;
    members_of(each,
               [&object](const char* name, const auto& value) { object[name] = Json(value); });
    out.emplace_back(std::move(object));
  }
  return out;
}

/// Reads the members of one object; the first of another type is kept as the error.
class MemberReader {
 public:
  explicit MemberReader(const Json::Object& members) : members_(&members) {}

  void operator()(const char* name, std::string& into) {
    read(name, "a text", [&into](const Json& value) {
      const auto* text = value.as_string();
      into = text == nullptr ? into : *text;
      return text != nullptr;
    });
  }
  void operator()(const char* name, std::int64_t& into) {
    read(name, "a number", [&into](const Json& value) {
      const auto* number = value.as_int();
      into = number == nullptr ? into : *number;
      return number != nullptr;
    });
  }
  void operator()(const char* name, bool& into) {
    read(name, "true or false", [&into](const Json& value) {
      const auto* truth = value.as_bool();
      into = truth == nullptr ? into : *truth;
      return truth != nullptr;
    });
  }
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  template <class Take>
  void read(const char* name, std::string_view takes, Take take) {
    const auto found = members_->find(name);
    if (result_ && found != members_->end() && !take(found->second)) {
      result_ = wrong_backup_fact(name, takes);
    }
  }
  const Json::Object* members_;
  Result<void> result_{};
};

template <class Facts>
Result<void> read_list(const Json::Object& members, const char* name, std::vector<Facts>& into) {
  const auto found = members.find(name);
  if (found == members.end()) {
    return {};
  }
  const auto* list = found->second.as_array();
  if (list == nullptr) {
    return wrong_backup_fact(name, "a list");
  }
  for (const auto& each : *list) {
    const auto* object = each.as_object();
    if (object == nullptr) {
      return wrong_backup_fact(name, "a list of objects");
    }
    MemberReader reader(*object);
    members_of(into.emplace_back(), reader);
    VERGER_RETURN_IF_ERROR(reader.result());
  }
  return {};
}

}  // namespace

const BackupAgentFacts* BackupFacts::find_agent(std::string_view node) const {
  const auto found = std::ranges::find(agents, node, &BackupAgentFacts::node);
  return found == agents.end() ? nullptr : &*found;
}
const BackupGenerationFacts* BackupFacts::find_generation(std::string_view id) const {
  const auto found = std::ranges::find(generations, id, &BackupGenerationFacts::id);
  return found == generations.end() ? nullptr : &*found;
}
const BackupGenerationFacts* BackupFacts::latest_of(std::string_view node) const {
  const BackupGenerationFacts* out = nullptr;
  for (const auto& each : generations) {
    if (each.node == node && each.damage.empty()) {
      out = &each;
    }
  }
  return out;
}

Json to_json(const BackupFacts& facts) {
  return Json::Object{{"agents", written(facts.agents)},
                      {"generations", written(facts.generations)}};
}

Result<BackupFacts> parse_backup_facts(const Json& value) {
  const auto* members = value.as_object();
  if (members == nullptr) {
    return wrong_backup_fact("it", "an object");
  }
  BackupFacts out;
  VERGER_RETURN_IF_ERROR(read_list(*members, "agents", out.agents));
  VERGER_RETURN_IF_ERROR(read_list(*members, "generations", out.generations));
  return out;
}

}  // namespace verger::planner
