#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/index/index_map.h"

/// The input is an index map, and what follows the hash in one. What is accepted is written again
/// as the same map.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto sealed = to_hex(md5(as_bytes(text)));
  for (auto& digit : sealed) {
    digit = digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit;
  }
  sealed += text;
  for (const auto input : {text, std::string_view(sealed)}) {
    const auto map = index::parse_index_map(input);
    if (map) {
      const auto again = index::parse_index_map(index::format_index_map(*map));
      if (!again || *again != *map) {
        __builtin_trap();
      }
    }
  }
  return 0;
}
