#include "controller/operations/restore/room.h"

namespace verger::controller::cluster_restore {

std::int64_t room_on(const api::AgentFacts& facts) {
  if (facts.disk_total_bytes <= 0) {
    return -1;
  }
  // Two directories on one disk report the same.
  const bool own_disk =
      facts.index_disk_total_bytes > 0 && facts.index_disk_total_bytes != facts.disk_total_bytes;
  return facts.disk_free_bytes + (own_disk ? facts.index_disk_free_bytes : 0);
}

}  // namespace verger::controller::cluster_restore
