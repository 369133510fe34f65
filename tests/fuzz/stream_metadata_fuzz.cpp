#include "engine/streams/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const std::uint8_t version : {std::uint8_t{0}, std::uint8_t{1}}) {
    const auto metadata = streams::parse_metadata(bytes, version);
    if (metadata.max_count.value_or(1) <= 0 || metadata.max_age_seconds.value_or(1) <= 0 ||
        metadata.truncate_before.value_or(0) < 0) {
      __builtin_trap();
    }
  }
  return 0;
}
