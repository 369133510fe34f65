#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "controller/cluster/own_queries.h"
#include "controller/scheduler/detail/time_fields.h"
#include "controller/scheduler/detail/yaml_fields.h"
#include "controller/scheduler/notification_format.h"
#include "controller/scheduler/schedule_policy.h"
#include "engine/base/number_from_text.h"
#include "nodeagent/http/client.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

using detail::YamlFields;

class PolicyReader {
 public:
  PolicyReader(const YAML::Node& root, const planner::Policy& defaults)
      : fields_(root, "", problems_) {
    policy_.plan = defaults;
  }

  std::expected<SchedulePolicy, std::vector<PolicyProblem>> read() {
    if (!fields_.text("name", policy_.name) || policy_.name.empty()) {
      fields_.problem("name is missing: what the policy is called");
    } else if (!std::ranges::all_of(policy_.name, [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
               })) {
      fields_.problem(fields_.get("name"),
                      "name takes small letters, digits and hyphens: it is part of addresses");
    } else if (policy_.name == "ad-hoc") {
      fields_.problem(fields_.get("name"), "ad-hoc is reserved for plans made by hand");
    }
    policy_.plan.name = policy_.name;
    fields_.text("description", policy_.description);
    fields_.boolean("enabled", policy_.enabled);
    read_operation();
    read_selection();
    detail::read_schedules(fields_, policy_.schedules);
    detail::read_windows(fields_, policy_.windows);
    fields_.choice("catch_up", policy_.catch_up,
                   {CatchUp::kRun, CatchUp::kSkip, CatchUp::kRunIfInWindow});
    std::int64_t expected = 0;
    fields_.length_ms("expected_duration", expected);
    if (expected > 0) {
      policy_.expected_duration = std::chrono::seconds(expected / 1000);
    }
    fields_.boolean("spans_openings", policy_.spans_openings);
    fields_.choice("resign", policy_.resign, {ResignRule::kAllowed, ResignRule::kNeedsApproval});
    read_fields(fields_, "");
    check_fields();
    read_notifications();
    refuse_sections_of_others();
    fields_.refuse_unknown_keys();
    if (!problems_.empty()) {
      std::ranges::sort(problems_, {}, [](const PolicyProblem& each) {
        return std::pair(each.line, std::string_view(each.message));
      });
      return std::unexpected(std::move(problems_));
    }
    return std::move(policy_);
  }

 private:
  void read_operation() {
    std::string name(planner::operation_name(policy_.plan));
    fields_.text("operation", name);
    operation_ = planner::find_operation(name);
    if (operation_ == nullptr) {
      fields_.problem(fields_.get("operation"), fmt::format("operation \"{}\" is not known; {}",
                                                            name, planner::known_operations()));
      operation_ = planner::operations().front();  // to name what else is wrong
      operation_known_ = false;
    }
    if (operation_ != planner::operation_of(policy_.plan)) {
      policy_.plan.operation = operation_->defaults();
    }
  }

  void read_selection() {
    fields_.texts("clusters", policy_.clusters);
    const auto labels = fields_.get("labels");
    if (labels.IsDefined()) {
      if (!labels.IsMap()) {
        fields_.problem(labels, "labels must be a mapping, such as {tier: gold}");
      } else {
        for (const auto& each : labels) {
          policy_.labels[each.first.as<std::string>("")] = each.second.as<std::string>("");
        }
      }
    }
    if (policy_.clusters.empty() == policy_.labels.empty()) {
      fields_.problem(policy_.clusters.empty()
                          ? "neither clusters nor labels: the policy selects nothing"
                          : "clusters and labels: give one of them");
    }
  }

  /// What the operation's table of fields has in this section, and in those inside it.
  void read_fields(YamlFields& in, std::string_view section) {
    std::set<std::string_view> inside;
    for (const auto* field : planner::fields_of(*operation_)) {
      const auto own = planner::section_of(*field);
      if (own == section) {
        read_field(in, *field);
      } else if (section.empty() || own.starts_with(std::string(section) + ".")) {
        const auto rest = own.substr(section.empty() ? 0 : section.size() + 1);
        inside.insert(
            own.substr(0, own.size() - rest.size() + std::min(rest.find('.'), rest.size())));
      }
    }
    for (const auto path : inside) {
      const auto node = in.get(std::string(path.substr(section.empty() ? 0 : section.size() + 1)));
      if (node.IsDefined()) {
        YamlFields fields(node, std::string(path), problems_);
        read_fields(fields, path);
        fields.refuse_unknown_keys();
      }
    }
  }

  void read_field(YamlFields& in, const planner::Field& field) {
    const std::string key(planner::key_of(field));
    const auto value = field.get(policy_.plan);
    if (const auto* truth = value.as_bool()) {
      bool into = *truth;
      in.boolean(key, into);
      field.set(policy_.plan, into);
    } else if (const auto* number = value.as_int()) {
      auto into = *number;
      if (field.type == planner::Field::Type::kMilliseconds) {
        in.length_ms(key, into);
      } else if (field.type == planner::Field::Type::kBytes) {
        in.size(key, into);
      } else {
        in.number(key, into, field.low, field.high);
      }
      field.set(policy_.plan, into);
    } else if (const auto* text = value.as_string()) {
      auto into = *text;
      if (field.type == planner::Field::Type::kText) {
        in.text(key, into);
      } else {
        in.one_of(key, into, field.choices);
      }
      field.set(policy_.plan, into);
    } else {
      read_queries(in);
    }
  }

  /// "restore" in a policy without "operation: restore": that key is missing, not a spelling wrong.
  void refuse_sections_of_others() {
    if (!operation_known_) {
      return;
    }
    const auto first_of = [](const planner::Field& field) {
      return field.place.substr(0, field.place.find('.'));
    };
    std::set<std::string_view> seen;
    for (const auto* field : planner::fields_of(*operation_)) {
      seen.insert(first_of(*field));
    }
    for (const auto* other : planner::operations()) {
      for (const auto* field : planner::fields_of(*other)) {
        const auto key = first_of(*field);
        if (!seen.insert(key).second) {
          continue;
        }
        if (const auto said = fields_.key(key); said.IsDefined()) {
          fields_.problem(
              said,
              fmt::format("{0} goes with operation {1}, and this policy is of operation {2}; say "
                          "\"operation: {1}\", or remove {0}",
                          key, other->name, operation_->name));
        }
      }
    }
  }

  void check_fields() {
    for (const auto& problem : operation_->check(policy_.plan)) {
      fields_.problem(fields_.get(problem.place),
                      fmt::format("{}: {}; {}", problem.place, problem.message, problem.hint));
    }
  }

  void read_queries(YamlFields& parent) {
    const auto list = parent.get("queries");
    if (!list.IsDefined()) {
      return;
    }
    if (!list.IsSequence()) {
      parent.problem(list, "gates.queries must be a list of {name, url, query, at_most}");
      return;
    }
    policy_.plan.gates.queries.clear();
    for (const YAML::Node& each : list) {
      YamlFields fields(each, "gates.queries", problems_);
      planner::QueryBlocker out;
      fields.text("name", out.name);
      fields.text("url", out.url);
      fields.text("query", out.query);
      const auto bound = [&fields](const char* key, std::string& into) {
        if (fields.text(key, into) && !number_from_text<double>(into)) {
          fields.problem(fields.get(key), fmt::format("{}{} is \"{}\"; it takes a number",
                                                      fields.prefix(), key, into));
        }
      };
      bound("at_least", out.at_least);
      bound("at_most", out.at_most);
      fields.refuse_unknown_keys();
      if (out.name.empty() || out.query.empty() || (out.at_least.empty() && out.at_most.empty())) {
        fields.problem(each, "a query needs name, url, query, and at_least, at_most or both");
      }
      if (out.url == kOwnQueries) {
        check_own_query(fields, out);
      } else if (!http::parse_endpoint(out.url)) {
        fields.problem(fields.get("url"),
                       fmt::format("gates.queries.url is \"{}\"; it takes the address of a "
                                   "Prometheus server, such as http://127.0.0.1:9090, or {}",
                                   out.url, kOwnQueries));
      }
      policy_.plan.gates.queries.push_back(std::move(out));
    }
  }

  void check_own_query(YamlFields& fields, const planner::QueryBlocker& query) {
    if (!is_own_query(query.query)) {
      fields.problem(fields.get("query"),
                     fmt::format("gates.queries.query is \"{}\"; of {} it takes {}", query.query,
                                 kOwnQueries, own_queries_text()));
    } else if (operation_->max_age_ms != nullptr) {
      // Its own runs make what the age is of.
      fields.problem(fields.get("query"),
                     fmt::format("a policy of operation {} does not wait for {}: its runs are what "
                                 "ends the wait",
                                 operation_->name, query.query));
    }
  }

  void read_notifications() {
    const auto list = fields_.get("notifications");
    if (!list.IsDefined()) {
      return;
    }
    if (!list.IsSequence()) {
      fields_.problem(
          list, "notifications must be a list of {on, webhook}, {on, command} or {on, email}");
      return;
    }
    static const std::vector<std::string> kMoments{"started",
                                                   "stopped",
                                                   "done",
                                                   "done-with-differences",
                                                   "failed",
                                                   "cancelled",
                                                   "waiting",
                                                   "missed",
                                                   "late",
                                                   "too-old",
                                                   "certificate-ends",
                                                   "server-stays-down"};
    for (const YAML::Node& each : list) {
      YamlFields fields(each, "notifications", problems_);
      Notification out;
      fields.texts("on", out.on);
      fields.text("webhook", out.webhook);
      fields.texts("command", out.command);
      fields.text("email", out.email);
      fields.text("format", out.format);
      fields.refuse_unknown_keys();
      for (const auto& moment : out.on) {
        if (std::ranges::find(kMoments, moment) == kMoments.end()) {
          fields.problem(fields.get("on"), fmt::format("notifications.on has \"{}\"; it takes {}",
                                                       moment, fmt::join(kMoments, ", ")));
        }
      }
      const int ways = (out.webhook.empty() ? 0 : 1) + (out.command.empty() ? 0 : 1) +
                       (out.email.empty() ? 0 : 1);
      if (out.on.empty() || ways != 1) {
        fields.problem(each, "a notification needs on, and one of webhook, command and email");
      }
      if (!out.format.empty() && out.webhook.empty()) {
        fields.problem(fields.get("format"), "notifications.format is of a webhook");
      } else if (!out.format.empty() && std::ranges::find(notification_formats(), out.format) ==
                                            notification_formats().end()) {
        fields.problem(fields.get("format"),
                       fmt::format("notifications.format is \"{}\"; it takes {}", out.format,
                                   fmt::join(notification_formats(), ", ")));
      }
      if (!out.email.empty() && !is_mail_address(out.email)) {
        fields.problem(fields.get("email"),
                       fmt::format("notifications.email is \"{}\"; it takes an address, such as "
                                   "ops@example.com",
                                   out.email));
      }
      policy_.notifications.push_back(std::move(out));
    }
  }

  std::vector<PolicyProblem> problems_;
  YamlFields fields_;
  SchedulePolicy policy_;
  const planner::Operation* operation_ = nullptr;
  bool operation_known_ = true;
};

}  // namespace

std::expected<SchedulePolicy, std::vector<PolicyProblem>> parse_schedule_policy(
    std::string_view yaml, const planner::Policy& defaults) {
  try {
    const auto documents = YAML::LoadAll(std::string(yaml));
    if (documents.size() != 1) {
      return std::unexpected(
          std::vector{PolicyProblem{0, documents.empty() ? "the file is empty"
                                                         : "the file holds several documents; one "
                                                           "policy is one file"}});
    }
    auto policy = PolicyReader(documents.front(), defaults).read();
    if (policy) {
      policy->source = std::string(yaml);
    }
    return policy;
  } catch (const YAML::Exception& error) {
    return std::unexpected(std::vector{PolicyProblem{error.mark.line + 1, error.msg}});
  }
}

}  // namespace verger::controller
