#include "nodeagent/client/dialect.h"

namespace verger::client {

NodeDialect NodeDialect::of(api::Version version) {
  const auto from = [&](std::int32_t major, std::int32_t minor, std::int32_t patch = 0) {
    return version >= api::Version{major, minor, patch};
  };
  NodeDialect out;
  out.version = version;
  out.scavenge_parameters = from(22, 10);
  out.resumes_scavenges = from(22, 10);
  out.current_scavenge = from(22, 10, 1);
  out.stop_waits = from(22, 10, 1);
  out.last_scavenge = from(24, 10);
  out.running_id_in_refusal = !from(23, 6);
  out.reload = from(20, 6, 1);
  out.reload_takes_new_paths = !from(21, 0) || from(22, 10, 3);
  out.resign = from(20, 6);
  out.prefers_other_after_resign = from(24, 10);
  out.metrics = from(23, 6);
  out.anonymous_stats = !from(23, 6);
  out.stale_single_gossip = from(20, 6) && !from(24, 10);
  out.may_auto_scavenge = from(24, 10);
  return out;
}

std::optional<NodeDialect> NodeDialect::of_text(std::string_view version) {
  const auto parsed = api::parse_version(version);
  if (!parsed.has_value()) {
    return std::nullopt;
  }
  return of(*parsed);
}

}  // namespace verger::client
