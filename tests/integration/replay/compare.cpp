#include "tests/integration/replay/compare.h"

#include <algorithm>
#include <array>
#include <regex>
#include <set>

namespace verger::testing {
namespace {

using nlohmann::json;

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// "https://10.0.0.1:2113/users/x" -> "/users/x"
std::string path_of(const std::string& url) {
  const auto scheme = url.find("://");
  const auto path = scheme == std::string::npos ? 0 : url.find('/', scheme + 3);
  auto found = path == std::string::npos ? std::string() : url.substr(path);
  // The id that the node makes for an idempotent retry.
  const auto incoming = found.find("/incoming/");
  return found.substr(0, incoming == std::string::npos ? incoming : incoming + 10);
}

bool is_decisive(const std::string& name) {
  static const std::set<std::string> names = {
      "error",        "success",          "msgTypeId",      "label",
      "loginName",    "fullName",         "groups",         "disabled",
      "streamId",     "eventType",        "relation",       "rel",
      "isJson",       "isMetaData",       "isLinkMetaData", "isRedacted",
      "headOfStream", "eventStreamId",    "scavengeId",     "scavengeLink",
      "summary",      "positionStreamId", "schema",         "type"};
  return names.contains(name);
}

bool is_cut(const json& body) {
  return (body.is_object() && body.contains("trimmed")) || body == "(page)";
}

class BodyComparison {
 public:
  /// `partial`: the recording kept some members only. `decisive`: values count, where they can.
  BodyComparison(const Names& names, std::vector<std::string>& out, bool partial = false,
                 bool decisive = true)
      : names_(names), out_(out), partial_(partial), decisive_(decisive) {}

  void compare(const json& expected, const json& own, const std::string& where,
               const std::string& name) {
    if (partial_ && name == "entries" && expected.is_string()) {
      return;
    }
    if (kind(expected) != kind(own)) {
      out_.push_back(where + " is a " + kind(own) + ", not a " + kind(expected));
    } else if (expected.is_object()) {
      objects(expected, own, where);
    } else if (expected.is_array()) {
      if (expected.empty() != own.empty()) {
        out_.push_back(where + (own.empty() ? " is empty" : " is not empty"));
      } else if (!expected.empty() && !counts(name)) {
        compare(expected[0], own[0], where + "[0]", name);
      } else if (counts(name) && expected != own) {
        out_.push_back(where + " is " + own.dump() + ", not " + expected.dump());
      }
    } else if (counts(name) && !expected.is_null()) {
      const auto wanted =
          expected.is_string() ? json(names_.translate(expected.get<std::string>())) : expected;
      if (wanted != own) {
        out_.push_back(where + " is " + own.dump() + ", not " + wanted.dump());
      }
    }
  }

 private:
  static std::string kind(const json& value) {
    return value.is_number() ? "number" : value.type_name();
  }

  void objects(const json& expected, const json& own, const std::string& where) {
    for (const auto& [name, value] : expected.items()) {
      if (!own.contains(name)) {
        out_.push_back(where + "." + name + " is missing");
      } else {
        compare(value, own[name], where + "." + name, name);
      }
    }
    for (const auto& [name, value] : own.items()) {
      if (!partial_ && !expected.contains(name)) {
        out_.push_back(where + "." + name + " is not in the recording");
      }
    }
  }

  [[nodiscard]] bool counts(const std::string& name) const {
    return decisive_ && is_decisive(name);
  }

  const Names& names_;
  std::vector<std::string>& out_;
  bool partial_;
  bool decisive_;
};

/// Element names of XML, or the labels of the server's text form, each once and in order.
std::vector<std::string> labels_of(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    const auto label = (*at)[1].str();
    if (std::ranges::find(found, label) == found.end()) {
      found.push_back(label);
    }
  }
  return found;
}

std::string without_ids(const std::string& text) {
  static const std::regex id("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
  return std::regex_replace(text, id, "<id>");
}

/// The lines of a metrics page that say what the node does; which other metrics there are depends
/// on the runtime.
std::set<std::string> metric_lines(const std::string& text) {
  static const std::regex line(
      R"(^(eventstore_(?:statuses\{name="\w+"|elections_count|checkpoints\{[^}]*\})))",
      std::regex::multiline);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    found.insert((*at)[1].str());
  }
  return found;
}

void compare_text(const std::string& expected, const std::string& own, const Names& names,
                  std::vector<std::string>& out) {
  static const std::regex element("<([A-Za-z]+)");
  static const std::regex label("(?:\\[|, |,)([A-Za-z]+): ");
  if (expected.starts_with("# TYPE")) {
    const auto lines = metric_lines(own);
    for (const auto& line : metric_lines(expected)) {
      if (!lines.contains(line)) {
        out.push_back("metric " + line + " is missing");
      }
    }
  } else if (expected.starts_with("{")) {
    auto parsed = json::parse(own, nullptr, false);
    if (parsed.is_object()) {
      parsed.erase("verger");
    }
    BodyComparison(names, out).compare(json::parse(expected), parsed, "body", "");
  } else if (expected.starts_with("<?xml")) {
    if (labels_of(expected, element) != labels_of(own, element)) {
      out.push_back("other XML elements: " + own);
    }
  } else if (expected.starts_with("Server: ")) {
    if (labels_of(expected, label) != labels_of(own, label)) {
      out.push_back("other labels: " + own);
    }
  } else if (without_ids(names.translate(expected)) != without_ids(own)) {
    out.push_back("body is '" + own + "', not '" + expected + "'");
  }
}

constexpr std::array kMatter = {"Content-Type",     "Access-Control-Allow-Methods",
                                "Cache-Control",    "Vary",
                                "WWW-Authenticate", "Allow",
                                "Location",         "ES-CurrentVersion",
                                "Retry-After"};

}  // namespace

void Names::learn(const std::string& recorded, const std::string& own) {
  own_[recorded] = own;
  own_[upper(recorded)] = upper(own);
}

std::string Names::translate(std::string text) const {
  for (const auto& [recorded, own] : own_) {
    for (auto at = text.find(recorded); at != std::string::npos;
         at = text.find(recorded, at + own.size())) {
      text.replace(at, recorded.size(), own);
    }
  }
  return text;
}

std::vector<std::string> differences(const json& exchange, const http::Response& answer,
                                     const Names& names) {
  std::vector<std::string> out;
  const auto& expected = exchange["response"];
  if (answer.status != expected["status"].get<int>()) {
    out.push_back("status is " + std::to_string(answer.status) + ", not " +
                  expected["status"].dump());
  }
  const auto reason =
      answer.reason.empty() ? std::string(http::standard_reason(answer.status)) : answer.reason;
  if (reason != expected["reason"].get<std::string>()) {
    out.push_back("reason is '" + reason + "', not " + expected["reason"].dump());
  }
  for (const auto* name : kMatter) {
    std::string wanted = expected["headers"].value(name, "(none)");
    std::string own(answer.headers.get(name).value_or("(none)"));
    if (std::string_view(name) == "Location") {
      wanted = path_of(wanted);
      own = path_of(own);
    }
    if (own != wanted) {
      out.push_back(std::string(name) + " is '" + own + "', not '" + wanted + "'");
    }
  }
  if (expected["headers"].contains("ETag") != answer.headers.get("ETag").has_value()) {
    out.emplace_back("ETag is there in one of the two");
  }
  const auto& body = expected["body"];
  if (is_cut(body)) {
    return out;
  }
  const std::string type = expected["headers"].value("Content-Type", "");
  if (body.is_string() && type.find("json") == std::string::npos) {
    compare_text(body.get<std::string>(), answer.body, names, out);
    return out;
  }
  // An empty text that was sent as JSON has two bytes.
  if (body == "" && type.contains("json") &&
      expected["headers"].value("Content-Length", "") == "2") {
    if (answer.body != "\"\"") {
      out.push_back("the body is not an empty JSON text: " + answer.body);
    }
    return out;
  }
  if (body.is_null() || (body.is_string() && body.get<std::string>().empty())) {
    if (!answer.body.empty()) {
      out.push_back("the body is not empty: " + answer.body);
    }
    return out;
  }
  auto own = json::parse(answer.body, nullptr, false);
  if (own.is_discarded()) {
    out.push_back("the body is not JSON: " + answer.body);
    return out;
  }
  if (own.is_object()) {
    own.erase("verger");  // what only an embedded node says
  }
  const bool partial = body.is_object() && body.contains("entries") && !body.contains("title");
  // What is in $all depends on what the node wrote before.
  const bool all = exchange["request"]["path"].get<std::string>().find("$all") != std::string::npos;
  BodyComparison comparison(names, out, partial, !all);
  if (body.is_string()) {
    if (own != json(names.translate(body.get<std::string>()))) {
      out.push_back("body is " + answer.body + ", not " + body.dump());
    }
  } else {
    comparison.compare(body, own, "body", "");
  }
  return out;
}

}  // namespace verger::testing
