#include "controller/cluster/agent_book.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/names.h"
#include "controller/journal/append_and_fold.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr std::string_view kAgentStreams = "agent/";
constexpr std::string_view kTokenMark = "vergeragent_";
constexpr std::size_t kRequestBytes = std::size_t{16} * 1024;
constexpr seconds kLongestToken = std::chrono::hours(24 * 7);

std::string key_of(std::string_view cluster, std::string_view node) {
  return fmt::format("{}/{}", cluster, node);
}

Ticks after(Ticks time, seconds duration) {
  return Ticks(time.value() + duration.count() * kTicksPerSecond);
}

Result<Ticks> time_in(const json& data, const char* name) {
  return parse_ticks(data.value(name, std::string()));
}

/// As in the event kAgentEnrolled.
Result<EnrolledAgent> enrolled_agent(std::string cluster, std::string node, const json& data,
                                     Ticks at) {
  EnrolledAgent agent;
  agent.cluster = std::move(cluster);
  agent.node = std::move(node);
  agent.serials = {data.value("serial", std::string())};
  agent.authority = data.value("authority", std::string());
  agent.hosts = data.value("hosts", std::vector<std::string>());
  agent.enrolled_at = at;
  VERGER_TRY(agent.not_before, time_in(data, "not_before"));
  VERGER_TRY(agent.not_after, time_in(data, "not_after"));
  return agent;
}

}  // namespace

Result<void> AgentBook::load() {
  entries_.clear();
  tokens_.clear();
  VERGER_TRY(const auto streams, parts_.journal.streams(kAgentStreams));
  for (const auto& stream : streams) {
    VERGER_TRY(const auto events, parts_.journal.read(stream));
    for (const auto& event : events) {
      if (auto folded = fold(event); !folded) {
        return folded.error().within(
            fmt::format("journal, event {} of {}", event.sequence.value(), stream));
      }
    }
  }
  return {};
}

Result<void> AgentBook::fold(const JournalEvent& event) {
  const auto key = event.stream.substr(kAgentStreams.size());
  const auto slash = key.find('/');
  const auto cluster = key.substr(0, slash);
  const auto node = slash == std::string::npos ? std::string() : key.substr(slash + 1);
  auto& entry = entries_[key];
  entry.revision = event.revision;
  const auto data = json::parse(event.data, nullptr, false);
  if (!data.is_object()) {
    return Error{Errc::kCorruption, fmt::format("{} is no JSON object", event.type)};
  }
  if (event.type == events::kAgentTokenCreated) {
    replace_open_tokens(cluster, node);
    return fold_token(cluster, node, data);
  }
  if (event.type == events::kAgentForgotten) {
    replace_open_tokens(cluster, node);
    entry.agent.reset();
    entry.issued.reset();
    return {};
  }
  if (event.type == events::kAgentEnrolled) {
    auto& token = tokens_[data.value("token", std::string())];
    token.used_with_key = data.value("key", std::string());
    token.used_at = event.at;
    token.certificate = data.value("certificate", std::string());
    VERGER_TRY(entry.agent, enrolled_agent(cluster, node, data, event.at));
    entry.issued.reset();
    return {};
  }
  if (event.type == events::kAgentRenewed && entry.agent) {
    // Until it is known to have arrived the agent has the one before, whose end is what counts.
    IssuedCertificate issued;
    issued.serial = data.value("serial", std::string());
    issued.authority = data.value("authority", entry.agent->authority);
    VERGER_TRY(issued.not_before, time_in(data, "not_before"));
    VERGER_TRY(issued.not_after, time_in(data, "not_after"));
    entry.agent->serials.push_back(issued.serial);
    entry.issued = std::move(issued);
    return {};
  }
  if (event.type == events::kAgentCertificateArrived && entry.agent) {
    if (entry.issued && entry.issued->serial == data.value("serial", std::string())) {
      entry.agent->serials = {entry.issued->serial};
      entry.agent->authority = entry.issued->authority;
      entry.agent->not_before = entry.issued->not_before;
      entry.agent->not_after = entry.issued->not_after;
      entry.issued.reset();
    }
    return {};
  }
  return Error{Errc::kCorruption, fmt::format("unknown event {}", event.type)};
}

void AgentBook::replace_open_tokens(const std::string& cluster, const std::string& node) {
  for (auto& [id, token] : tokens_) {
    if (token.open.cluster == cluster && token.open.node == node) {
      token.replaced = token.replaced || token.used_with_key.empty();
    }
  }
}

Result<void> AgentBook::fold_token(const std::string& cluster, const std::string& node,
                                   const json& data) {
  Token token;
  VERGER_TRY(const auto expires_at, time_in(data, "expires_at"));
  token.open = {.cluster = cluster,
                .node = node,
                .id = data.value("token", std::string()),
                .created_by = data.value("by", std::string()),
                .hosts = data.value("hosts", std::vector<std::string>()),
                .expires_at = expires_at};
  token.kept = {.salt = data.value("salt", std::string()),
                .hash = data.value("hash", std::string())};
  tokens_[token.open.id] = std::move(token);
  return {};
}

Result<void> AgentBook::append(const std::string& cluster, const std::string& node,
                               std::string_view type, std::string data) {
  const auto key = key_of(cluster, node);
  const auto found = entries_.find(key);
  return append_and_fold(parts_.journal, fmt::format("{}{}", kAgentStreams, key), parts_.epoch,
                         found == entries_.end() ? Revision(0) : found->second.revision,
                         {NewEvent{std::string(type), std::move(data)}},
                         [this](const auto& event) { return fold(event); });
}

certificates::Subject AgentBook::subject_of(const std::string& cluster, const std::string& node,
                                            std::vector<std::string> hosts) const {
  return {.common_name = std::string(certificates::kAgentCommonName),
          .identity = certificates::agent_identity(cluster, node),
          .hosts = std::move(hosts),
          .usage = certificates::Usage::kServer};
}

Result<AgentBook::NewToken> AgentBook::create_token(const std::string& cluster,
                                                    const std::string& node,
                                                    std::vector<std::string> hosts,
                                                    seconds valid_for, const std::string& by) {
  if (parts_.authority == nullptr) {
    return Error{Errc::kUnsupported, "this controller has no authority for agents"};
  }
  VERGER_RETURN_IF_ERROR(check_name("cluster name", cluster));
  VERGER_RETURN_IF_ERROR(check_name("node name", node));
  if (valid_for < seconds(1) || valid_for > kLongestToken) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("a token is valid for 1 second to 7 days, not for {} s", valid_for.count())};
  }
  if (hosts.empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}/{}: no host is known for its agent: register the cluster with "
                             "--agent, or name the host by --host",
                             cluster, node)};
  }
  // What cannot be put into a certificate is better refused now than at the agent.
  VERGER_TRY(const auto trial, certificates::make_key_and_request());
  VERGER_RETURN_IF_ERROR(parts_.authority->issue(trial.request, subject_of(cluster, node, hosts),
                                                 parts_.clock.now(), seconds(1)));
  const auto made = make_secret(parts_.random);
  const json data{{"token", made.id},
                  {"salt", made.kept.salt},
                  {"hash", made.kept.hash},
                  {"hosts", hosts},
                  {"expires_at", format_ticks(after(parts_.clock.now(), valid_for))},
                  {"by", by}};
  VERGER_RETURN_IF_ERROR(append(cluster, node, events::kAgentTokenCreated, data.dump()));
  return NewToken{
      tokens_.at(made.id).open,
      fmt::format("{}{}_{}_{}", kTokenMark, made.id, made.secret, parts_.authority->fingerprint())};
}

Result<AgentBook::Enrolment> AgentBook::enrol(std::string_view text, std::string_view request) {
  const Error unknown{Errc::kUnauthorized,
                      "the token is not known here, or a newer one has taken its place; an admin "
                      "makes one with: verger agent token CLUSTER/NODE"};
  if (parts_.authority == nullptr || !text.starts_with(kTokenMark)) {
    return unknown;
  }
  text.remove_prefix(kTokenMark.size());
  const auto first = text.find('_');
  const auto second = first == std::string_view::npos ? first : text.find('_', first + 1);
  const auto found = tokens_.find(text.substr(0, first));
  if (second == std::string_view::npos || found == tokens_.end()) {
    return unknown;
  }
  const auto& token = found->second;
  const auto secret = text.substr(first + 1, second - first - 1);
  if (!token.kept.matches(secret) || token.replaced) {
    return unknown;
  }
  const auto cluster = token.open.cluster;
  const auto node = token.open.node;
  if (request.size() > kRequestBytes) {
    return Error{Errc::kInvalidArgument, "the certificate request is too long"};
  }
  VERGER_TRY(const auto key, certificates::key_of_request(request));
  const auto* agent = find(cluster, node);
  if (!token.used_with_key.empty()) {
    if (token.used_with_key != key || agent == nullptr) {
      return Error{
          Errc::kConflict,
          fmt::format("the token of {}/{} was used already, at {}: it is good for one "
                      "agent once. If that was not you, run: verger agent forget {}/{}. "
                      "For a new one: verger agent token {}/{}",
                      cluster, node, format_ticks(token.used_at), cluster, node, cluster, node)};
    }
    return Enrolment{cluster, node, token.certificate, parts_.authority->root(), agent->not_after};
  }
  if (parts_.clock.now() >= token.open.expires_at) {
    return Error{Errc::kTimeout,
                 fmt::format("the token of {}/{} has expired at {}; make a new one with: verger "
                             "agent token {}/{}",
                             cluster, node, format_ticks(token.open.expires_at), cluster, node)};
  }
  VERGER_TRY(const auto issued,
             parts_.authority->issue(request, subject_of(cluster, node, token.open.hosts),
                                     parts_.clock.now(), parts_.certificate_lifetime));
  const json data{{"token", token.open.id},
                  {"key", key},
                  {"serial", issued.serial},
                  {"not_before", format_ticks(issued.not_before)},
                  {"not_after", format_ticks(issued.not_after)},
                  {"hosts", token.open.hosts},
                  {"authority", parts_.authority->fingerprint()},
                  {"certificate", issued.certificate},
                  {"by", fmt::format("token {} of {}", token.open.id, token.open.created_by)}};
  VERGER_RETURN_IF_ERROR(append(cluster, node, events::kAgentEnrolled, data.dump()));
  return Enrolment{cluster, node, issued.certificate, parts_.authority->root(), issued.not_after};
}

Result<certificates::Issued> AgentBook::renew(const std::string& cluster, const std::string& node,
                                              std::string_view request) {
  const auto* agent = find(cluster, node);
  if (agent == nullptr || parts_.authority == nullptr) {
    return Error{Errc::kNotFound, fmt::format("{}/{} has not enrolled", cluster, node)};
  }
  VERGER_TRY(auto issued, parts_.authority->issue(request, subject_of(cluster, node, agent->hosts),
                                                  parts_.clock.now(), parts_.certificate_lifetime));
  // Before the agent gets it: whichever of the two it shows after a crash is then accepted.
  const json data{{"serial", issued.serial},
                  {"not_before", format_ticks(issued.not_before)},
                  {"not_after", format_ticks(issued.not_after)},
                  {"authority", parts_.authority->fingerprint()},
                  {"by", "vergerd"}};
  VERGER_RETURN_IF_ERROR(append(cluster, node, events::kAgentRenewed, data.dump()));
  return issued;
}

Result<void> AgentBook::has_arrived(const std::string& cluster, const std::string& node,
                                    const std::string& serial) {
  const auto found = entries_.find(key_of(cluster, node));
  if (found == entries_.end() || !found->second.issued || found->second.issued->serial != serial) {
    return Error{Errc::kNotFound,
                 fmt::format("{}/{}: certificate {} is not on its way", cluster, node, serial)};
  }
  return append(cluster, node, events::kAgentCertificateArrived,
                json{{"serial", serial}, {"by", "vergerd"}}.dump());
}

Result<void> AgentBook::forget(const std::string& cluster, const std::string& node,
                               const std::string& by) {
  const bool waiting = std::ranges::any_of(open_tokens(), [&](const OpenAgentToken& token) {
    return token.cluster == cluster && token.node == node;
  });
  if (find(cluster, node) == nullptr && !waiting) {
    return Error{Errc::kNotFound,
                 fmt::format("{}/{} has not enrolled; see: verger agent list", cluster, node)};
  }
  return append(cluster, node, events::kAgentForgotten, json{{"by", by}}.dump());
}

std::vector<EnrolledAgent> AgentBook::agents() const {
  std::vector<EnrolledAgent> out;
  for (const auto& [key, entry] : entries_) {
    if (entry.agent) {
      out.push_back(*entry.agent);
    }
  }
  return out;
}

bool AgentBook::has_agents() const {
  return std::ranges::any_of(entries_,
                             [](const auto& each) { return each.second.agent.has_value(); });
}

std::vector<OpenAgentToken> AgentBook::open_tokens() const {
  std::vector<OpenAgentToken> out;
  for (const auto& [id, token] : tokens_) {
    if (!token.replaced && token.used_with_key.empty()) {
      out.push_back(token.open);
    }
  }
  std::ranges::sort(out, {},
                    [](const OpenAgentToken& token) { return key_of(token.cluster, token.node); });
  return out;
}

const EnrolledAgent* AgentBook::find(std::string_view cluster, std::string_view node) const {
  const auto found = entries_.find(key_of(cluster, node));
  if (found == entries_.end()) {
    return nullptr;
  }
  const auto& agent = found->second.agent;
  return agent ? &*agent : nullptr;
}

Ticks AgentBook::renew_at(const EnrolledAgent& agent) {
  const auto issued_at =
      agent.not_before.value() + seconds(certificates::kClocksDiffer).count() * kTicksPerSecond;
  const auto life = agent.not_after.value() - issued_at;
  return Ticks(agent.not_after.value() - life / 3);
}

}  // namespace verger::controller
