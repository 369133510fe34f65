#include "controller/journal/detail/etcd_snapshots.h"

#include <nlohmann/json.hpp>

namespace verger::controller::detail {

using nlohmann::json;

json writing(const EtcdKeys& keys, const StreamTip& tip, const Snapshot& snapshot) {
  return json::array({etcd::put(keys.summary(snapshot.stream), summary_text(tip, snapshot.summary)),
                      etcd::put(keys.state(snapshot.stream), snapshot.state)});
}

Result<std::optional<Snapshot>> read_snapshot(EtcdStore& store, std::string_view stream) {
  const auto& keys = store.keys();
  VERGER_TRY(
      const auto found,
      store.get(json::array({etcd::get(keys.summary(stream)), etcd::get(keys.state(stream))})));
  if (found[0].empty() || found[1].empty()) {
    return std::optional<Snapshot>();
  }
  VERGER_TRY(const auto kept, parse_summary_value(found[0].front()));
  VERGER_TRY(const auto event,
             store.get(json::array({etcd::get(keys.event(stream, kept.tip.revision.value()))})));
  if (event[0].empty()) {
    return std::optional<Snapshot>();
  }
  VERGER_TRY(const auto made_with, parse_event(event[0].front()));
  if (made_with.hash != kept.tip.hash) {
    return std::optional<Snapshot>();
  }
  return std::optional(
      Snapshot{std::string(stream), kept.tip.revision, kept.summary, found[1].front().value});
}

Result<std::vector<Snapshot>> read_current_snapshots(EtcdStore& store, std::string_view prefix) {
  VERGER_TRY(const auto tips, store.all_below("streams/", prefix));
  VERGER_TRY(const auto summaries, store.all_below("snapshots/", prefix));
  std::vector<Snapshot> out;
  for (const auto& [stream, kv] : summaries) {
    const auto found = tips.find(stream);
    if (found == tips.end()) {
      continue;
    }
    VERGER_TRY(const auto tip, parse_tip(found->second));
    VERGER_TRY(auto kept, parse_summary_value(kv));
    if (kept.tip.revision == tip.revision && kept.tip.hash == tip.hash) {
      out.push_back(Snapshot{stream, tip.revision, std::move(kept.summary), {}});
    }
  }
  return out;
}

}  // namespace verger::controller::detail
