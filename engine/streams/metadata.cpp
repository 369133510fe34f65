#include "engine/streams/metadata.h"

#include <limits>

#include "engine/streams/detail/lenient_json.h"

namespace verger::streams {
namespace {

using detail::JsonToken;
using detail::LenientJsonReader;

/// The next token has to be `expected`.
bool read_token(LenientJsonReader& reader, JsonToken expected) {
  return reader.read() && reader.token() == expected;
}

/// Seconds as the server's durations hold them: 64 bits of 100 ns, computed with doubles.
bool fits_duration(std::int64_t seconds) {
  const double ticks = static_cast<double>(seconds) * 1e7;
  constexpr double kLimit = 9223372036854775808.0;
  return ticks <= kLimit && ticks >= -kLimit;
}

/// One string or an array of strings.
std::optional<std::vector<std::string>> read_roles(LenientJsonReader& reader) {
  if (!reader.read()) {
    return std::nullopt;
  }
  std::vector<std::string> roles;
  if (reader.token() == JsonToken::kString) {
    roles.push_back(reader.text());
    return roles;
  }
  if (reader.token() != JsonToken::kStartArray) {
    return std::nullopt;
  }
  while (reader.read()) {
    if (reader.token() == JsonToken::kEndArray) {
      return roles;
    }
    if (reader.token() != JsonToken::kString) {
      return std::nullopt;
    }
    roles.push_back(reader.text());
  }
  return std::nullopt;
}

std::optional<StreamAcl> read_acl(LenientJsonReader& reader) {
  if (!read_token(reader, JsonToken::kStartObject)) {
    return std::nullopt;
  }
  StreamAcl acl;
  while (reader.read()) {
    if (reader.token() == JsonToken::kEndObject) {
      return acl;
    }
    if (reader.token() != JsonToken::kPropertyName) {
      return std::nullopt;
    }
    const auto& name = reader.text();
    auto* const roles = name == "$r"    ? &acl.read
                        : name == "$w"  ? &acl.write
                        : name == "$d"  ? &acl.remove
                        : name == "$mr" ? &acl.metadata_read
                        : name == "$mw" ? &acl.metadata_write
                                        : nullptr;
    if (roles == nullptr) {
      return std::nullopt;
    }
    *roles = read_roles(reader);
    if (!roles->has_value()) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Reads the value of the member `name`; false when the server would refuse the whole text.
bool read_member(LenientJsonReader& reader, std::string_view name, StreamMetadata& metadata) {
  if (name == "$maxCount") {
    if (!read_token(reader, JsonToken::kInteger)) {
      return false;
    }
    metadata.max_count = reader.integer();
  } else if (name == "$maxAge") {
    if (!read_token(reader, JsonToken::kInteger) || !fits_duration(reader.integer())) {
      return false;
    }
    metadata.max_age_seconds = reader.integer();
  } else if (name == "$tb") {
    if (!read_token(reader, JsonToken::kInteger)) {
      return false;
    }
    metadata.truncate_before = reader.integer();
  } else if (name == "$tmp") {
    return read_token(reader, JsonToken::kBoolean);
  } else if (name == "$cacheControl") {
    return read_token(reader, JsonToken::kInteger) && fits_duration(reader.integer());
  } else if (name == "$acl") {
    metadata.acl = read_acl(reader);
    return metadata.acl.has_value();
  } else {
    return reader.read() && reader.skip_value();
  }
  return true;
}

}  // namespace

StreamMetadata parse_metadata(ByteView json, std::uint8_t record_version) {
  LenientJsonReader reader(json);
  StreamMetadata metadata;
  if (!read_token(reader, JsonToken::kStartObject)) {
    return {};
  }
  for (;;) {
    if (!reader.read()) {
      return {};
    }
    if (reader.token() == JsonToken::kEndObject) {
      break;
    }
    if (reader.token() != JsonToken::kPropertyName) {
      return {};
    }
    const std::string name = reader.text();
    if (!read_member(reader, name, metadata)) {
      return {};
    }
  }
  if (metadata.max_count && *metadata.max_count <= 0) {
    metadata.max_count.reset();
  }
  if (metadata.max_age_seconds && *metadata.max_age_seconds <= 0) {
    metadata.max_age_seconds.reset();
  }
  if (metadata.truncate_before && *metadata.truncate_before < 0) {
    metadata.truncate_before.reset();
  }
  if (record_version == 0 && metadata.truncate_before == std::numeric_limits<std::int32_t>::max()) {
    metadata.truncate_before = kDeletedStream.value();
  }
  return metadata;
}

}  // namespace verger::streams
