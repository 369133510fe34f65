#include "engine/base/digest.h"
#include "engine/redaction/plaintext_digests.h"

/// What is read, with a checksum that is right, can be searched for, written and read again.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const auto input = std::as_bytes(std::span(data, size));
  Bytes bytes(input.begin(), input.end());
  append_bytes(bytes, sha256(bytes));
  if (const auto digests = redaction::PlaintextDigests::decode(bytes)) {
    redaction::PlaintextScanner scanner(*digests);
    scanner.feed(input);
    static_cast<void>(scanner.finish());
    const auto again = redaction::PlaintextDigests::decode(digests->encode());
    if (!again || again->text_count() != digests->text_count()) {
      __builtin_trap();
    }
  }
  return 0;
}
