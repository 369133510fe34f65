#include "controller/scheduler/notification_format.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;

/// Discord takes 2,000 characters, the others more; bytes are no fewer than characters.
constexpr std::size_t kLongestText = 1'900;
constexpr std::size_t kShownOfRun = 8;

std::string member(const json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// What JSON cannot hold is shown as U+FFFD.
std::string dumped(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// As long as a service takes it; cut neither within a character of UTF-8 nor within a replacement.
std::string with_replaced(std::string_view text,
                          std::initializer_list<std::pair<char, std::string_view>> replacements) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    auto end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      ++end;
    }
    auto next = text.substr(at, end - at);
    const auto found =
        std::ranges::find(replacements, next.front(), [](const auto& each) { return each.first; });
    if (found != replacements.end()) {
      next = found->second;
    }
    if (out.size() + next.size() > kLongestText) {
      return out + "…";
    }
    out += next;
    at = end;
  }
  return out;
}

/// What a service would take for a link, a mention or a format, is shown as it is.
std::string for_slack(std::string_view text) {
  return with_replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}});
}
std::string for_markdown(std::string_view text) {
  return with_replaced(text, {{'\\', "\\\\"},
                              {'*', "\\*"},
                              {'_', "\\_"},
                              {'`', "\\`"},
                              {'~', "\\~"},
                              {'|', "\\|"},
                              {'[', "\\["},
                              {'<', "\\<"},
                              {'@', "@\u200b"}});
}

bool is_bad(std::string_view moment) {
  return moment == "failed" || moment == "done-with-differences" || moment == "server-stays-down" ||
         moment == "too-old";
}

json teams_card(const json& event) {
  auto facts = json::array();
  for (const auto& [title, name] : {std::pair("Cluster", "cluster"), std::pair("Policy", "policy"),
                                    std::pair("Run", "run"), std::pair("At", "at")}) {
    if (auto value = member(event, name); !value.empty()) {
      facts.push_back({{"title", title}, {"value", for_markdown(value)}});
    }
  }
  const json card{
      {"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
      {"type", "AdaptiveCard"},
      {"version", "1.4"},
      {"body",
       json::array({json{{"type", "TextBlock"},
                         {"text", for_markdown(notification_line(event))},
                         {"wrap", true},
                         {"weight", "Bolder"},
                         {"color", is_bad(member(event, "moment")) ? "Attention" : "Default"}},
                    json{{"type", "FactSet"}, {"facts", std::move(facts)}}})}};
  return {
      {"type", "message"},
      {"attachments", json::array({json{{"contentType", "application/vnd.microsoft.card.adaptive"},
                                        {"contentUrl", nullptr},
                                        {"content", card}}})}};
}

}  // namespace

const std::vector<std::string>& notification_formats() {
  static const std::vector<std::string> kFormats{"json", "slack", "mattermost", "teams", "discord"};
  return kFormats;
}

std::string notification_line(const json& event) {
  const auto cluster = member(event, "cluster");
  const auto run = member(event, "run").substr(0, kShownOfRun);
  const auto moment = member(event, "moment");
  const auto reason = member(event, "reason");
  std::string what = moment;
  if (moment == "test") {
    what = "a test of notifications";
  } else if (!run.empty()) {
    what = fmt::format("run {} {}", run, moment);
  } else if (const auto policy = member(event, "policy"); !policy.empty()) {
    what = fmt::format("policy {}: {}", policy, moment);
  }
  auto line = fmt::format("{}{}{}{}{}", cluster, cluster.empty() ? "" : ": ", what,
                          reason.empty() ? "" : ": ", reason);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; }, ' ');
  return line;
}

Result<std::string> notification_body(std::string_view format, const json& event) {
  if (format.empty() || format == "json") {
    return dumped(event);
  }
  const auto line = notification_line(event);
  if (format == "slack") {
    return dumped({{"text", for_slack(line)}, {"mrkdwn", false}});
  }
  if (format == "mattermost") {
    return dumped({{"text", for_markdown(line)}, {"username", "verger"}});
  }
  if (format == "discord") {
    return dumped({{"content", for_markdown(line)},
                   {"username", "verger"},
                   {"allowed_mentions", {{"parse", json::array()}}}});
  }
  if (format == "teams") {
    return dumped(teams_card(event));
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("\"{}\" is no format of notifications; it takes {}", format,
                           fmt::join(notification_formats(), ", "))};
}

std::string notification_text(const json& event) {
  auto out = notification_line(event) + "\n\n";
  for (const auto& [name, value] : event.items()) {
    const bool empty = value.is_string() && value.get_ref<const std::string&>().empty();
    if (!value.is_null() && !empty) {
      out += fmt::format("{}: {}\n", name,
                         value.is_string() ? value.get<std::string>() : dumped(value));
    }
  }
  return out;
}

bool is_mail_address(std::string_view text) {
  const auto at = text.find('@');
  return at != std::string_view::npos && at > 0 && at + 1 < text.size() && text.size() <= 254 &&
         text.find('@', at + 1) == std::string_view::npos && std::ranges::all_of(text, [](char c) {
           const auto code = static_cast<unsigned char>(c);
           return code > 0x20U && code < 0x7FU && c != '<' && c != '>' && c != '"' && c != '\\' &&
                  c != ',' && c != ';';
         });
}

}  // namespace verger::controller
