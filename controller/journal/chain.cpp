#include "controller/journal/chain.h"

#include <fmt/format.h>

namespace verger::controller {
namespace {

/// Each text with its length in front, so that no two events give the same bytes.
void add_text(Bytes& out, std::string_view text) {
  append_le(out, static_cast<std::uint64_t>(text.size()));
  append_bytes(out, as_bytes(text));
}

}  // namespace

Sha256Digest chain_hash(ByteView before, const JournalEvent& event) {
  Bytes bytes(before.begin(), before.end());
  append_le(bytes, event.sequence.value());
  add_text(bytes, event.stream);
  append_le(bytes, event.revision.value());
  add_text(bytes, event.type);
  add_text(bytes, event.data);
  append_le(bytes, event.at.value());
  append_le(bytes, event.epoch.value());
  return sha256(bytes);
}

JournalEvent chain_event(ChainHead& head, std::string_view stream, Revision revision,
                         NewEvent event, Ticks at, ControllerEpoch epoch) {
  JournalEvent out{Sequence(head.sequence.value() + 1),
                   std::string(stream),
                   revision,
                   std::move(event.type),
                   std::move(event.data),
                   at,
                   epoch,
                   ""};
  const auto hash = chain_hash(head.hash, out);
  out.hash = to_hex(hash);
  head.sequence = out.sequence;
  head.hash.assign(hash.begin(), hash.end());
  return out;
}

Result<void> ChainCheck::next(const JournalEvent& event) {
  const auto hash = chain_hash(before_, event);
  if (event.sequence.value() != at_.value() + 1 || to_hex(hash) != event.hash) {
    return Error{Errc::kCorruption,
                 fmt::format("event {} ({} in {}) is not what was written, or one before it is "
                             "missing",
                             event.sequence.value(), event.type, event.stream)};
  }
  before_.assign(hash.begin(), hash.end());
  at_ = event.sequence;
  return {};
}

}  // namespace verger::controller
