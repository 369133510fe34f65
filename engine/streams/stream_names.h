#pragma once

#include <string>
#include <string_view>

namespace verger::streams {

/// "$$x" holds the metadata of the stream "x".
inline bool is_metastream(std::string_view stream) { return stream.starts_with("$$"); }
inline std::string metastream_of(std::string_view stream) { return "$$" + std::string(stream); }
/// `metastream` is one.
inline std::string_view original_of(std::string_view metastream) { return metastream.substr(2); }

/// True for the streams that a plain read of $all leaves out.
bool hidden_in_all(std::string_view stream);

inline constexpr std::string_view kMetadataType = "$metadata";
inline constexpr std::string_view kTombstoneType = "$streamDeleted";
inline constexpr std::string_view kScavengePointsStream = "$scavengePoints";
inline constexpr std::string_view kScavengePointType = "$scavengePoint";

}  // namespace verger::streams
