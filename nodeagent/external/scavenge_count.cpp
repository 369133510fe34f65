#include "nodeagent/external/scavenge_count.h"

#include <algorithm>

namespace verger::external {
namespace {

/// At rest a look costs one small page; what came since, or before this agent, comes in larger
/// ones.
constexpr std::int32_t kNewest = 10;
constexpr std::int32_t kPage = 200;

}  // namespace

net::awaitable<void> ScavengeCount::look(const client::NodeClient& client, std::string id) {
  if (id != id_) {
    *this = ScavengeCount();
    id_ = id;
  }
  std::int64_t chunks = 0;
  std::int64_t bytes = 0;
  auto newest = next_ - 1;
  std::optional<std::int64_t> from;  // pages go back from the newest entry
  while (true) {
    const auto page =
        client::to_result(co_await client.scavenge_log(id, from ? kPage : kNewest, from));
    if (!page) {
      co_return;
    }
    std::optional<std::int64_t> oldest;
    for (const auto& event : *page) {
      if (from && event.number > *from) {
        continue;
      }
      newest = std::max(newest, event.number);
      oldest = std::min(oldest.value_or(event.number), event.number);
      if (event.number >= next_ && event.type == "$scavengeChunksCompleted") {
        chunks += event.chunk_end - event.chunk_start + 1;
        bytes += event.space_saved;
      }
    }
    if (!oldest || *oldest <= next_) {
      break;
    }
    from = *oldest - 1;
  }
  chunks_done_ += chunks;
  bytes_saved_ += bytes;
  next_ = newest + 1;
}

}  // namespace verger::external
