#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/cli/doctor_checks.h"
#include "controller/cli/json_text.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"

// Tokens of the API, one-time tokens of agents, and the certificates that agents got for them.
namespace verger::cli {
namespace {

using nlohmann::json;
using Diagnoses = std::vector<Diagnosis>;
using std::chrono::seconds;

constexpr seconds kTokenToWarn = std::chrono::days(14);
/// Agents renew by themselves; one that is so late does not.
constexpr seconds kRenewalIsLate = std::chrono::days(1);

/// From `now` to a time of an answer; nullopt: it has none.
std::optional<seconds> left_until(const json& object, const char* name, Ticks now) {
  const auto time = parse_ticks(text_of(object, name));
  return time ? std::optional(seconds((time->value() - now.value()) / kTicksPerSecond))
              : std::nullopt;
}

std::string another_token(const std::string& role) {
  return fmt::format(
      "make another: verger token create NAME --role {} --expires 90d --out FILE; take it: "
      "verger login URL --token-file FILE",
      role);
}

/// A one-time token that its agent has not used.
void check_open_token(const json& token, Ticks now, Diagnoses& out) {
  const auto left = left_until(token, "expires_at", now);
  if (!left) {
    return;
  }
  const auto node = text_of(token, "cluster") + "/" + text_of(token, "node");
  const auto remedy = fmt::format("verger agent enrol {}", node);
  if (is_true(token, "expired") || *left <= seconds(0)) {
    out.push_back({Verdict::kWarning, node,
                   "its one-time token has expired, and its agent has not enrolled with it",
                   "run the line of a new one on the node: " + remedy});
  } else {
    out.push_back({Verdict::kNote, node,
                   fmt::format("its agent has not enrolled yet; its one-time token expires in {}",
                               length_text(*left)),
                   "run its line on the node before; a new one: " + remedy});
  }
}

void check_enrolled(const json& agent, Ticks now, Diagnoses& out) {
  const auto node = text_of(agent, "cluster") + "/" + text_of(agent, "node");
  const auto left = left_until(agent, "not_after", now);
  const auto renewal = left_until(agent, "renew_at", now);
  const auto remedy =
      fmt::format("on its machine: journalctl -u verger-agent; else verger agent enrol {}", node);
  if (left && *left <= seconds(0)) {
    out.push_back(
        {Verdict::kError, node,
         fmt::format("the certificate of its agent ended at {}", time_of(agent, "not_after")),
         remedy});
  } else if (renewal && *renewal < -kRenewalIsLate) {
    out.push_back({Verdict::kWarning, node,
                   fmt::format("its agent should have renewed its certificate at {}; it ends at {}",
                               time_of(agent, "renew_at"), time_of(agent, "not_after")),
                   remedy});
  }
}

}  // namespace

Diagnoses check_caller(const json& caller, Ticks now) {
  const auto role = text_of(caller, "role");
  const auto text = fmt::format("{} with the role {}", text_of(caller, "name"), role);
  if (const auto left = left_until(caller, "expires_at", now); left && *left < kTokenToWarn) {
    return {{Verdict::kWarning, "token",
             fmt::format("{}: it expires at {}, in {}; then vergerd refuses it", text,
                         time_of(caller, "expires_at"), length_text(*left)),
             (role == "admin" ? "" : "ask an admin: ") + another_token(role)}};
  }
  if (role == "viewer") {
    return {{Verdict::kNote, "token", text + ": it may look and not change anything",
             "plans, runs and pauses need an operator's token, policies and clusters an admin's"}};
  }
  return {{Verdict::kOk, "token", text}};
}

Diagnoses check_tokens(const json& tokens, const std::string& own, Ticks now) {
  Diagnoses out;
  for (const auto& token : list_of(tokens, "tokens")) {
    const auto left = left_until(token, "expires_at", now);
    if (!left || is_true(token, "revoked") || *left >= kTokenToWarn) {
      continue;
    }
    const auto name = text_of(token, "name");
    const auto subject = "token " + name;
    const auto role = text_of(token, "role");
    if (is_true(token, "expired") || *left <= seconds(0)) {
      out.push_back({Verdict::kNote, subject,
                     fmt::format("the {}'s token expired at {}: what uses it is refused", role,
                                 time_of(token, "expires_at")),
                     fmt::format("{}; or clear the list: verger token revoke {}",
                                 another_token(role), text_of(token, "id"))});
    } else if (name != own) {
      out.push_back({Verdict::kWarning, subject,
                     fmt::format("the {}'s token expires at {}, in {}", role,
                                 time_of(token, "expires_at"), length_text(*left)),
                     another_token(role)});
    }
  }
  return out;
}

Diagnoses check_agents(const json& agents, const std::string& cluster, Ticks now) {
  Diagnoses out;
  const auto is_meant = [&cluster](const json& each) {
    return cluster.empty() || text_of(each, "cluster") == cluster;
  };
  for (const auto& token : list_of(agents, "tokens")) {
    if (is_meant(token)) {
      check_open_token(token, now, out);
    }
  }
  for (const auto& agent : list_of(agents, "agents")) {
    if (is_meant(agent)) {
      check_enrolled(agent, now, out);
    }
  }
  return out;
}

}  // namespace verger::cli
