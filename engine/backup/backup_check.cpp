#include "engine/backup/backup_check.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "engine/backup/detail/checked_document.h"
#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/json_number.h"

namespace verger::backup {
namespace {

constexpr detail::DocumentKind kCheckDocument{"verger-backup-check", "record of a check"};

BackupCheck check_of(const nlohmann::ordered_json& body) {
  BackupCheck check;
  const auto& kind = body.at("kind").get_ref<const std::string&>();
  if (kind == to_string(BackupCheck::Kind::kDrill)) {
    check.kind = BackupCheck::Kind::kDrill;
  } else if (kind != to_string(BackupCheck::Kind::kVerify)) {
    throw std::out_of_range(fmt::format("\"{}\" is no kind of check", kind));
  }
  const auto at = parse_ticks(body.at("at").get_ref<const std::string&>());
  if (!at) {
    throw std::out_of_range(at.error().message);
  }
  check.at = *at;
  check.by = body.at("by").get<std::string>();
  check.passed = body.at("passed").get<bool>();
  check.summary = body.at("summary").get<std::string>();
  check.duration_ms = json_integer<std::int64_t>(body.at("durationMs"));
  check.position = LogPosition(json_integer<std::int64_t>(body.at("position")));
  for (const auto& [name, figure] : body.at("figures").items()) {
    check.figures.emplace(name, json_integer<std::int64_t>(figure));
  }
  return check;
}

}  // namespace

std::string_view to_string(BackupCheck::Kind kind) {
  switch (kind) {
    case BackupCheck::Kind::kVerify:
      return "verify";
    case BackupCheck::Kind::kDrill:
      return "drill";
  }
  return "verify";
}

std::string encode_check(const BackupCheck& check) {
  nlohmann::ordered_json body = {{"kind", to_string(check.kind)},
                                 {"at", format_ticks(check.at)},
                                 {"by", check.by},
                                 {"passed", check.passed},
                                 {"summary", check.summary},
                                 {"durationMs", check.duration_ms},
                                 {"position", check.position.value()},
                                 {"figures", nlohmann::ordered_json::object()}};
  for (const auto& [name, figure] : check.figures) {
    body["figures"][name] = figure;
  }
  return detail::encode_document(kCheckDocument, body);
}

Result<BackupCheck> decode_check(ByteView bytes) {
  return detail::decode_document(kCheckDocument, bytes, check_of);
}

std::string check_prefix(std::string_view generation, BackupCheck::Kind kind) {
  return fmt::format("{}.{}.", generation, to_string(kind));
}

std::string check_name(std::string_view generation, const BackupCheck& check) {
  const auto digits = to_hex(sha256(as_bytes(encode_check(check))));
  return fmt::format("{}{:020d}-{}", check_prefix(generation, check.kind), check.at.value(),
                     std::string_view(digits).substr(0, 8));
}

}  // namespace verger::backup
