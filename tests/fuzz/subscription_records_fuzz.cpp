#include "nodeagent/node/persistent/group_records.h"

/// What the log holds of persistent subscriptions, which any client with the right may write: what
/// is read is written and read again as it was.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;            // NOLINT(google-build-using-namespace)
  using namespace node::persistent;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto groups = parse_config(bytes)) {
    const auto again = parse_config(as_bytes(config_json(*groups, Ticks(0), "fuzz")));
    if (!again || *again != *groups) {
      __builtin_trap();
    }
    for (const auto& group : *groups) {
      static_cast<void>(problem_of(group.settings));
    }
  }
  for (const bool all : {false, true}) {
    if (const auto position = parse_checkpoint(bytes, all)) {
      const auto again = parse_checkpoint(as_bytes(checkpoint_json(*position)), all);
      if (again != position) {
        __builtin_trap();
      }
    }
  }
  return 0;
}
