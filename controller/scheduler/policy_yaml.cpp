#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>

#include "controller/cluster/own_queries.h"
#include "controller/scheduler/detail/yaml_fields.h"
#include "controller/scheduler/notification_format.h"
#include "controller/scheduler/schedule_policy.h"
#include "engine/base/number_from_text.h"
#include "nodeagent/http/client.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

using detail::line_of;
using detail::YamlFields;
using std::chrono::days;
using std::chrono::minutes;

class PolicyReader {
 public:
  PolicyReader(const YAML::Node& root, const planner::Policy& defaults)
      : fields_(root, "", problems_) {
    policy_.plan = defaults;
  }

  std::expected<SchedulePolicy, std::vector<PolicyProblem>> read() {
    if (!fields_.text("name", policy_.name) || policy_.name.empty()) {
      problems_.push_back({fields_.line(), "name is missing: what the policy is called"});
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
    read_schedules();
    read_windows();
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
      problems_.push_back(
          {fields_.line(), policy_.clusters.empty()
                               ? "neither clusters nor labels: the policy selects nothing"
                               : "clusters and labels: give one of them"});
    }
  }

  std::optional<Zone> read_zone(YamlFields& fields) {
    std::string name;
    if (!fields.text("zone", name)) {
      problems_.push_back({fields.line(), fmt::format("{}zone is missing, such as Europe/Berlin; "
                                                      "UTC has to be said too",
                                                      fields.prefix())});
      return std::nullopt;
    }
    const auto zone = Zone::find(name);
    if (!zone) {
      fields.problem(fields.get("zone"), zone.error().message);
      return std::nullopt;
    }
    return *zone;
  }

  void read_schedules() {
    const auto list = fields_.get("schedule");
    if (!list.IsDefined()) {
      return;  // only by hand
    }
    if (!list.IsSequence() || list.size() == 0) {
      fields_.problem(list, "schedule must be a list of {cron, zone}");
      return;
    }
    for (const YAML::Node& each : list) {
      YamlFields fields(each, "schedule", problems_);
      std::string cron;
      const bool given = fields.text("cron", cron);
      const auto zone = read_zone(fields);
      fields.refuse_unknown_keys();
      if (!given) {
        problems_.push_back({line_of(each), "schedule.cron is missing, such as \"0 22 * * sat\""});
        continue;
      }
      auto schedule = CronSchedule::parse(cron, zone.value_or(Zone()));
      if (!schedule) {
        problems_.push_back({line_of(each), schedule.error().message});
      } else {
        policy_.schedules.push_back(*std::move(schedule));
      }
    }
  }

  void read_windows() {
    const auto windows = fields_.get("windows");
    if (!windows.IsDefined()) {
      return;
    }
    YamlFields fields(windows, "windows", problems_);
    read_window_list(fields, "allow", policy_.windows.allow);
    read_window_list(fields, "deny", policy_.windows.deny);
    fields.refuse_unknown_keys();
  }

  void read_window_list(YamlFields& parent, const std::string& key, std::vector<Window>& into) {
    const auto list = parent.get(key);
    if (!list.IsDefined()) {
      return;
    }
    if (!list.IsSequence()) {
      parent.problem(list, fmt::format("windows.{} must be a list", key));
      return;
    }
    for (const YAML::Node& each : list) {
      YamlFields fields(each, "windows." + key, problems_);
      if (auto window = read_window(fields)) {
        into.push_back(*std::move(window));
      }
    }
  }

  std::optional<Window> read_window(YamlFields& fields) {
    const auto before = problems_.size();
    Window out;
    fields.text("name", out.name);
    std::vector<std::string> day_names;
    fields.texts("days", day_names);
    std::string from;
    std::string to;
    const bool has_from = fields.text("from", from);
    const bool has_to = fields.text("to", to);
    if (const auto zone = read_zone(fields)) {
      out.zone = *zone;
    }
    fields.refuse_unknown_keys();
    if (!has_from || !has_to) {
      problems_.push_back(
          {fields.line(),
           fmt::format("{}from and to are needed, as 22:00 or 2024-12-24T18:00", fields.prefix())});
      return std::nullopt;
    }
    out.weekly = from.find('T') == std::string::npos && from.size() <= 5;
    if (out.weekly) {
      read_weekly(fields, day_names, from, to, out);
    } else {
      read_dated(fields, day_names, from, to, out);
    }
    return problems_.size() == before ? std::optional(std::move(out)) : std::nullopt;
  }

  std::optional<minutes> read_clock(YamlFields& fields, const char* key, const std::string& text) {
    int hour = -1;
    int minute = -1;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, hour);
    if (first.ec == std::errc() && first.ptr != end && *first.ptr == ':') {
      const auto second = std::from_chars(first.ptr + 1, end, minute);
      if (second.ec == std::errc() && second.ptr == end && second.ptr - first.ptr == 3 &&
          hour >= 0 && minute >= 0 && minute < 60 && (hour < 24 || (hour == 24 && minute == 0))) {
        return std::chrono::hours(hour) + minutes(minute);
      }
    }
    fields.problem(fields.get(key), fmt::format("{}{} is \"{}\"; it takes a time as \"22:00\"",
                                                fields.prefix(), key, text));
    return std::nullopt;
  }

  void read_weekly(YamlFields& fields, const std::vector<std::string>& names,
                   const std::string& from, const std::string& to, Window& out) {
    static const std::vector<std::string> kNames{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    if (names.empty()) {
      out.weekdays.set();
    }
    for (const auto& name : names) {
      const auto dash = name.find('-');
      const auto first = std::ranges::find(kNames, name.substr(0, dash));
      const auto last =
          dash == std::string::npos ? first : std::ranges::find(kNames, name.substr(dash + 1));
      if (first == kNames.end() || last == kNames.end()) {
        fields.problem(fields.get("days"),
                       fmt::format("{}days has \"{}\"; it takes mon, tue, wed, thu, fri, sat, sun, "
                                   "or a range as mon-fri",
                                   fields.prefix(), name));
        continue;
      }
      for (auto day = static_cast<std::size_t>(first - kNames.begin());; day = (day + 1) % 7) {
        out.weekdays.set(day);
        if (day == static_cast<std::size_t>(last - kNames.begin())) {
          break;
        }
      }
    }
    const auto begin = read_clock(fields, "from", from);
    const auto end = read_clock(fields, "to", to);
    if (begin && end) {
      out.from = *begin;
      out.to = *end;
      if (out.from == minutes(1'440)) {
        fields.problem(fields.get("from"),
                       fmt::format("{}from is 24:00; say 00:00 of the next day", fields.prefix()));
      }
    }
  }

  std::optional<LocalSeconds> read_date(YamlFields& fields, const char* key,
                                        const std::string& text) {
    int values[5] = {0, 0, 0, 0, 0};
    const char* at = text.data();
    const char* const end = at + text.size();
    constexpr std::string_view kSeparators = "--T:";
    std::size_t count = 0;
    bool good = true;
    for (; count < 5 && good; ++count) {
      const auto [next, error] = std::from_chars(at, end, values[count]);
      good = error == std::errc() && values[count] >= 0;
      at = next;
      if (at == end) {
        ++count;
        break;
      }
      good = good && count < 4 && *at == kSeparators[count];
      ++at;
    }
    const std::chrono::year_month_day date{std::chrono::year(values[0]),
                                           std::chrono::month(static_cast<unsigned>(values[1])),
                                           std::chrono::day(static_cast<unsigned>(values[2]))};
    if (!good || at != end || (count != 3 && count != 5) || !date.ok() || values[0] < 1970 ||
        values[0] > 9999 || values[1] > 12 || values[2] > 31 || values[3] > 23 || values[4] > 59) {
      fields.problem(fields.get(key),
                     fmt::format("{}{} is \"{}\"; it takes a time as \"22:00\" every week, or once "
                                 "as \"2024-12-24T18:00\" or \"2024-12-24\"",
                                 fields.prefix(), key, text));
      return std::nullopt;
    }
    return LocalSeconds(std::chrono::local_days(date)) + std::chrono::hours(values[3]) +
           minutes(values[4]);
  }

  void read_dated(YamlFields& fields, const std::vector<std::string>& names,
                  const std::string& from, const std::string& to, Window& out) {
    if (!names.empty()) {
      fields.problem(fields.get("days"),
                     fmt::format("{}days goes with times of day, not with dates", fields.prefix()));
    }
    const auto first = read_date(fields, "from", from);
    const auto last = read_date(fields, "to", to);
    if (first && last && *last <= *first) {
      fields.problem(fields.get("to"), fmt::format("{}to is not after from", fields.prefix()));
    }
    out.first = first.value_or(LocalSeconds());
    out.last = last.value_or(LocalSeconds());
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
        problems_.push_back(
            {line_of(each), "a query needs name, url, query, and at_least, at_most or both"});
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
        problems_.push_back(
            {line_of(each), "a notification needs on, and one of webhook, command and email"});
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
