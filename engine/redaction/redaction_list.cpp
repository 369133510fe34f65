#include "engine/redaction/redaction_list.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"
#include "engine/base/json_number.h"

namespace verger::redaction {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "verger-redactions";
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxListSize = 1ULL << 30U;

Error bad_line(std::size_t line, std::string_view why) {
  return {Errc::kCorruption, fmt::format("line {}: {}", line, why)};
}

int hex_value(char digit) {
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                        : -1;
}

/// Throws std::out_of_range.
Sha256Digest digest_from_hex(std::string_view text) {
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size()) {
    throw std::out_of_range("the digest is not of 64 digits");
  }
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      throw std::out_of_range("the digest is not hexadecimal");
    }
    digest[i] = static_cast<std::byte>(high * 16 + low);
  }
  return digest;
}

/// Throws nlohmann's exceptions and std::out_of_range.
ListedRedaction decode_entry(const nlohmann::json& json) {
  ListedRedaction entry;
  entry.stream = json.at("stream").get<std::string>();
  entry.number = EventNumber(json_integer<std::int64_t>(json.at("number")));
  entry.position = LogPosition(json_integer<std::int64_t>(json.at("position")));
  entry.metadata = json.at("metadata").get<bool>();
  entry.digest = digest_from_hex(json.at("digest").get<std::string>());
  if (entry.position.value() < 0 || entry.stream.empty()) {
    throw std::out_of_range("neither stream nor position may be missing");
  }
  return entry;
}

Result<void> decode_line(std::string_view text, std::size_t line,
                         std::vector<ListedRedaction>& list) {
  if (json_depth(text) > kMaxJsonDepth) {
    return bad_line(line, "is nested too deeply");
  }
  try {
    const auto json = nlohmann::json::parse(text);
    if (line > 1) {
      list.push_back(decode_entry(json));
      return {};
    }
    if (json.at("format").get<std::string>() != kFormat) {
      return bad_line(line, "is not the beginning of a list of redactions");
    }
    if (json_integer<int>(json.at("version")) != kVersion) {
      return Error{Errc::kUnsupported,
                   fmt::format("line 1: the list has another version than {}", kVersion)};
    }
    return {};
  } catch (const std::exception& error) {
    return bad_line(line, error.what());
  }
}

}  // namespace

Result<std::vector<ListedRedaction>> decode_list(std::string_view text) {
  std::vector<ListedRedaction> list;
  std::size_t line = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
      return bad_line(line + 1, "does not end: the list was cut off");
    }
    VERGER_RETURN_IF_ERROR(decode_line(text.substr(0, end), ++line, list));
    text.remove_prefix(end + 1);
  }
  return line == 0 ? Result<std::vector<ListedRedaction>>(bad_line(1, "is missing"))
                   : Result<std::vector<ListedRedaction>>(std::move(list));
}

std::string encode_list(const std::vector<ListedRedaction>& list) {
  auto text = ordered_json{{"format", kFormat}, {"version", kVersion}}.dump() + "\n";
  for (const auto& entry : list) {
    text += ordered_json{{"stream", entry.stream},
                         {"number", entry.number.value()},
                         {"position", entry.position.value()},
                         {"metadata", entry.metadata},
                         {"digest", to_hex(entry.digest)}}
                .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
            "\n";
  }
  return text;
}

Result<std::vector<ListedRedaction>> read_list(FileSystem& files, const Path& path) {
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return std::vector<ListedRedaction>();
  }
  VERGER_TRY(const auto bytes, read_file(files, path, kMaxListSize));
  auto list = decode_list(as_text(bytes));
  return list ? std::move(list)
              : Result<std::vector<ListedRedaction>>(list.error().within(path.string()));
}

Result<void> append_to_list(FileSystem& files, const Path& path,
                            const std::vector<ListedRedaction>& more) {
  VERGER_TRY(auto list, read_list(files, path));
  bool changed = false;
  for (const auto& entry : more) {
    const auto same = std::ranges::find(list, entry.position, &ListedRedaction::position);
    if (same == list.end()) {
      list.push_back(entry);
      changed = true;
    } else if (same->stream != entry.stream || same->number != entry.number) {
      return Error{
          Errc::kConflict,
          fmt::format("{}: has {}@{} at log position {}, where this database has {}@{}: the list "
                      "belongs to another database",
                      path.string(), same->number, same->stream, entry.position, entry.number,
                      entry.stream)};
    } else if (entry.metadata && !same->metadata) {
      *same = entry;
      changed = true;
    }
  }
  return changed ? write_file_durably(files, path, as_bytes(encode_list(list))) : Result<void>();
}

}  // namespace verger::redaction
