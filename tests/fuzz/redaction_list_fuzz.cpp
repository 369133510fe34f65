#include "engine/redaction/redaction_list.h"
#include "engine/redaction/redaction_plan.h"

/// What is read is written and read again as it was; names of events likewise.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto list = redaction::decode_list(text)) {
    const auto again = redaction::decode_list(redaction::encode_list(*list));
    if (!again || *again != *list) {
      __builtin_trap();
    }
  }
  if (const auto event = redaction::parse_event_name(text)) {
    const auto again =
        redaction::parse_event_name(redaction::name_of(event->stream, event->number));
    if (!again || *again != *event) {
      __builtin_trap();
    }
  }
  return 0;
}
