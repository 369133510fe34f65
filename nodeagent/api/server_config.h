#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

/// What agents say and change of their server's configuration file
/// (docs/formats/agent-interface.md, "The cluster size"):
///   GET /agent/v1/server-config    ServerConfig
/// and two kinds of operations.
namespace verger::api {

struct ServerConfig {
  std::string path{};                ///< of the file; empty: the agent does not know it
  std::string problem{};             ///< why the size cannot be changed there; empty: it can
  std::int32_t cluster_size = 0;     ///< in the file; 0: not there, or not known
  std::int32_t reported = 0;         ///< by the running server; 0: it does not run, or does not say
  std::vector<std::string> seeds{};  ///< in the file
  std::string seeds_from{};          ///< where else they come from, so that the file's do not count
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};
std::string to_text(const ServerConfig& config);
/// Error: kCorruption.
Result<ServerConfig> parse_server_config(std::string_view body);

inline constexpr std::string_view kServerSizeKind = "server_size";
inline constexpr std::string_view kServerSizeRestoreKind = "server_size_restore";

/// server_size.
struct ServerSize {
  std::string change{};  ///< names the former bytes: letters, digits and '-'
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::vector<std::string> add_seeds{};     ///< "host:port"
  std::vector<std::string> remove_seeds{};  ///< where the file lists seeds
  std::int64_t service_deadline_ms = 0;     ///< 0: the agent's default
  friend bool operator==(const ServerSize&, const ServerSize&) = default;
};
/// server_size_restore.
struct ServerSizeRestore {
  std::string change{};
  std::int64_t service_deadline_ms = 0;
  friend bool operator==(const ServerSizeRestore&, const ServerSizeRestore&) = default;
};
/// Result of both.
struct ServerSizeChanged {
  std::int32_t size = 0;  ///< as the server reports it
  std::string instance{};
  std::string seeds{};  ///< "changed", or why they were not
  bool restarted = false;
  friend bool operator==(const ServerSizeChanged&, const ServerSizeChanged&) = default;
};

std::string to_text(const ServerSize& parameters);
std::string to_text(const ServerSizeRestore& parameters);
std::string to_text(const ServerSizeChanged& result);
/// Errors: kInvalidArgument; of a result kCorruption.
Result<ServerSize> parse_server_size(std::string_view parameters_json);
Result<ServerSizeRestore> parse_server_size_restore(std::string_view parameters_json);
Result<ServerSizeChanged> parse_server_size_changed(std::string_view result_json);
std::vector<std::string_view> server_size_parameters();
std::vector<std::string_view> server_size_restore_parameters();

}  // namespace verger::api
