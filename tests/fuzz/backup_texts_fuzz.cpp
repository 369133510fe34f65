#include <fmt/format.h>
#include <string>

#include "engine/backup/manifest.h"
#include "engine/backup/repository_config.h"
#include "engine/base/digest.h"
#include "engine/object_store/detail/answers.h"

/// A manifest, and what follows the hash in one; a repository file; what object storage answers. A
/// manifest that is accepted is written again as the same one.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto text = as_text(bytes);
  const auto sealed =
      fmt::format("verger-backup-manifest 1 sha256 {}\n{}", to_hex(sha256(bytes)), text);
  for (const auto input : {bytes, as_bytes(sealed)}) {
    if (const auto manifest = backup::decode_manifest(input)) {
      const auto again = backup::decode_manifest(as_bytes(backup::encode_manifest(*manifest)));
      if (!again || again->files != manifest->files || again->source != manifest->source) {
        __builtin_trap();
      }
    }
  }
  static_cast<void>(backup::parse_repository_config(text).has_value());
  static_cast<void>(object_store::detail::list_page_of(text).has_value());
  static_cast<void>(object_store::detail::upload_page_of(text).has_value());
  static_cast<void>(object_store::detail::server_error_of(text));
  return 0;
}
