#pragma once

#include <fmt/format.h>
#include <set>
#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "controller/scheduler/schedule_policy.h"
#include "engine/base/number_from_text.h"

namespace verger::controller::detail {

inline int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

/// Reads the members of one YAML mapping, collects what is wrong, and names the keys that were
/// not read.
class YamlFields {
 public:
  YamlFields(const YAML::Node& node, std::string where, std::vector<PolicyProblem>& problems)
      : node_(node), where_(std::move(where)), problems_(problems) {
    if (!node_.IsMap()) {
      problem(node_, fmt::format("{} must be a mapping of keys to values", place()));
      node_ = YAML::Node(YAML::NodeType::Map);
    }
    std::set<std::string> seen;
    for (const auto& member : node_) {
      if (member.first.IsScalar() && !seen.insert(member.first.Scalar()).second) {
        problem(member.first, fmt::format("{}{} is there twice", prefix(), member.first.Scalar()));
      }
    }
  }

  [[nodiscard]] YAML::Node get(const std::string& key) {
    known_.push_back(key);
    return node_[key] ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  /// The key itself, with its line; undefined where it is missing. It becomes a known one only
  /// where it is there.
  [[nodiscard]] YAML::Node key(std::string_view name) {
    for (const auto& member : node_) {
      if (member.first.IsScalar() && member.first.Scalar() == name) {
        known_.emplace_back(name);
        return member.first;
      }
    }
    return YAML::Node(YAML::NodeType::Undefined);
  }
  [[nodiscard]] int line() const { return line_of(node_); }
  [[nodiscard]] std::string prefix() const { return where_.empty() ? "" : where_ + "."; }

  void problem(const YAML::Node& node, std::string message) {
    problems_.push_back({node.IsDefined() ? line_of(node) : 0, std::move(message)});
  }

  /// Of the mapping as a whole.
  void problem(std::string message) { problems_.push_back({line(), std::move(message)}); }
  /// Of the whole document, in the order in which they were found.
  [[nodiscard]] std::vector<PolicyProblem>& problems() const { return problems_; }

  bool text(const std::string& key, std::string& into) {
    const auto value = get(key);
    if (!value.IsDefined()) {
      return false;
    }
    if (!value.IsScalar()) {
      problem(value, fmt::format("{}{} must be a text", prefix(), key));
      return false;
    }
    into = value.Scalar();
    return true;
  }
  void boolean(const std::string& key, bool& into) {
    std::string value;
    if (!text(key, value)) {
      return;
    }
    if (value != "true" && value != "false") {
      problem(node_[key],
              fmt::format("{}{} is \"{}\"; it takes true or false", prefix(), key, value));
      return;
    }
    into = value == "true";
  }
  template <class T>
  void number(const std::string& key, T& into, std::int64_t low, std::int64_t high) {
    std::string value;
    if (!text(key, value)) {
      return;
    }
    const auto parsed = number_from_text<std::int64_t>(value);
    if (!parsed || *parsed < low || *parsed > high) {
      problem(node_[key],
              fmt::format("{}{} is \"{}\"; it takes {} to {}", prefix(), key, value, low, high));
      return;
    }
    into = static_cast<T>(*parsed);
  }
  template <class T>
  void choice(const std::string& key, T& into, std::initializer_list<T> choices) {
    std::vector<std::string_view> names;
    for (const auto each : choices) {
      names.push_back(to_string(each));
    }
    std::string value(to_string(into));
    one_of(key, value, names);
    for (const auto each : choices) {
      into = to_string(each) == value ? each : into;
    }
  }
  void one_of(const std::string& key, std::string& into,
              const std::vector<std::string_view>& choices) {
    std::string value;
    if (!text(key, value)) {
      return;
    }
    if (std::ranges::find(choices, value) == choices.end()) {
      problem(node_[key], fmt::format("{}{} is \"{}\"; it takes {}", prefix(), key, value,
                                      fmt::join(choices, ", ")));
      return;
    }
    into = value;
  }
  void length_ms(const std::string& key, std::int64_t& into) {
    std::string value;
    if (!text(key, value)) {
      return;
    }
    const auto parsed = parse_length(value);
    if (!parsed) {
      problem(node_[key], fmt::format("{}{}: {}", prefix(), key, parsed.error().message));
      return;
    }
    into = std::chrono::milliseconds(*parsed).count();
  }
  void size(const std::string& key, std::int64_t& into) {
    std::string value;
    if (!text(key, value)) {
      return;
    }
    const auto parsed = parse_size(value);
    if (!parsed) {
      problem(node_[key], fmt::format("{}{}: {}", prefix(), key, parsed.error().message));
      return;
    }
    into = *parsed;
  }
  /// A list of texts, or one text alone.
  void texts(const std::string& key, std::vector<std::string>& into) {
    const auto value = get(key);
    if (!value.IsDefined()) {
      return;
    }
    into.clear();
    if (value.IsScalar()) {
      into.push_back(value.Scalar());
      return;
    }
    if (!value.IsSequence()) {
      problem(value, fmt::format("{}{} must be a list", prefix(), key));
      return;
    }
    for (const auto& each : value) {
      if (!each.IsScalar()) {
        problem(each, fmt::format("{}{} must be a list of texts", prefix(), key));
        continue;
      }
      into.push_back(each.Scalar());
    }
  }

  /// Once every key was read.
  void refuse_unknown_keys() {
    for (const auto& member : node_) {
      const auto key = member.first.IsScalar() ? member.first.Scalar() : std::string("?");
      if (std::ranges::find(known_, key) != known_.end()) {
        continue;
      }
      const auto near = nearest_name(key, known_);
      problem(member.first, near.empty() ? fmt::format("{}{} is not a key here; known are: {}",
                                                       prefix(), key, fmt::join(known_, ", "))
                                         : fmt::format("{}{} is not a key here; did you mean {}?",
                                                       prefix(), key, near));
    }
  }

 private:
  [[nodiscard]] std::string place() const { return where_.empty() ? "a policy" : where_; }
  YAML::Node node_;
  std::string where_;
  std::vector<PolicyProblem>& problems_;
  std::vector<std::string> known_;
};

}  // namespace verger::controller::detail
