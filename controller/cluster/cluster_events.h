#pragma once

#include <string_view>

/// Types of the events in the streams "cluster/<name>". Data is JSON.
namespace verger::controller::events {

inline constexpr std::string_view kClusterAdded = "cluster-added";      ///< ClusterConfig
inline constexpr std::string_view kClusterUpdated = "cluster-updated";  ///< ClusterConfig
inline constexpr std::string_view kClusterRemoved = "cluster-removed";  ///< {}
inline constexpr std::string_view kClusterPaused = "cluster-paused";    ///< {reason, until}
inline constexpr std::string_view kClusterResumed = "cluster-resumed";  ///< {}
/// {identity} or {epoch: {number, id}}
inline constexpr std::string_view kClusterIdentified = "cluster-identified";

}  // namespace verger::controller::events
