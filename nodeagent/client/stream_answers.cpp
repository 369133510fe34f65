#include <charconv>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/client/answers.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

using nlohmann::json;

std::string text_of(const json& entry, std::string_view name) {
  const auto it = entry.find(name);
  if (it == entry.end() || it->is_null()) {
    return {};
  }
  return it->is_string() ? it->get<std::string>() : api::to_text(*it);
}

bool flag_of(const json& entry, std::string_view name) {
  const auto it = entry.find(name);
  return it != entry.end() && it->is_boolean() && it->get<bool>();
}

}  // namespace

Outcome<Appended> parse_answer_append(const http::Response& response) {
  switch (response.status) {
    case 201: {
      Appended appended;
      const auto location = response.headers.get("Location");
      if (!location.has_value()) {
        break;
      }
      appended.location = *location;
      const auto slash = appended.location.rfind('/') + 1;
      const auto* const end = appended.location.data() + appended.location.size();
      const auto [stop, error] =
          std::from_chars(appended.location.data() + slash, end, appended.first_number);
      if (error != std::errc{} || stop != end) {
        break;
      }
      return done(std::move(appended));
    }
    case 400:
      if (response.headers.get("ES-CurrentVersion").has_value() ||
          response.headers.get("Kurrent-CurrentVersion").has_value()) {
        return refused<Appended>("wrong_expected_version",
                                 "the stream is at another version: " + describe(response));
      }
      break;
    case 410:
      return refused<Appended>("stream_deleted", "the stream is deleted for good");
    default:
      break;
  }
  return common_failure(response).as<Appended>();
}

Outcome<StreamPage> parse_answer_page(const http::Response& response) {
  if (response.status == 404 && from_a_route(response)) {
    return refused<StreamPage>("not_found", "there is no such stream, or it is deleted");
  }
  if (response.status == 410) {
    return refused<StreamPage>("stream_deleted", "the stream is deleted for good");
  }
  if (response.status != 200) {
    return common_failure(response).as<StreamPage>();
  }
  const auto wrong = [](std::string why) {
    return unknown<StreamPage>("unexpected_answer", "page of a stream: " + std::move(why));
  };
  const auto value = api::parse_json(response.body, "page of a stream");
  if (!value.has_value()) {
    return wrong(value.error().message);
  }
  if (!value->is_object() || !value->contains("entries") || !(*value)["entries"].is_array()) {
    return wrong("entries are missing");
  }
  StreamPage page;
  page.head_of_stream = flag_of(*value, "headOfStream");
  if (value->contains("links") && (*value)["links"].is_array()) {
    for (const auto& link : (*value)["links"]) {
      if (!link.is_object()) {
        continue;
      }
      const auto relation = text_of(link, "relation");
      if (relation == "previous") {
        page.previous = text_of(link, "uri");
      } else if (relation == "next") {
        page.next = text_of(link, "uri");
      }
    }
  }
  for (const auto& entry : (*value)["entries"]) {
    if (!entry.is_object() || !entry.contains("eventType") ||
        !entry.value("eventNumber", json()).is_number_integer()) {
      return wrong("an entry has no type or number; ask with embed=body");
    }
    page.events.push_back(StreamEvent{.stream = text_of(entry, "streamId"),
                                      .number = entry["eventNumber"].get<std::int64_t>(),
                                      .type = text_of(entry, "eventType"),
                                      .id = text_of(entry, "eventId"),
                                      .data = text_of(entry, "data"),
                                      .metadata = text_of(entry, "metaData"),
                                      .is_redacted = flag_of(entry, "isRedacted")});
  }
  return done(std::move(page));
}

}  // namespace verger::client
