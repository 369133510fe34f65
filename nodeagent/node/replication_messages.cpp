#include "nodeagent/node/replication_messages.h"

#include <algorithm>
#include <limits>

namespace verger::node::replication {
namespace {

enum class Kind : std::uint8_t {
  kSubscribe = 1,
  kAck,
  kAccepted,
  kTruncate,
  kRefused,
  kBatch,
  kCompleteChunk,
  kNewChunk,
  kRawChunk,
  kProgress,
};

class Writer {
 public:
  explicit Writer(Kind kind) { number(static_cast<std::uint8_t>(kind)); }
  template <std::integral T>
  Writer& number(T value) {
    append_le(out_, value);
    return *this;
  }
  Writer& position(LogPosition value) { return number(value.value()); }
  Writer& flag(bool value) { return number(static_cast<std::uint8_t>(value)); }
  Writer& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    append_bytes(out_, as_bytes(value));
    return *this;
  }
  Writer& uuid(const Uuid& value) {
    append_bytes(out_, value.bytes);
    return *this;
  }
  Writer& end(const RecordEnd& value) {
    return position(value.place).position(value.data_end).flag(value.scavenged);
  }
  Writer& rest(ByteView bytes) {
    append_bytes(out_, bytes);
    return *this;
  }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

/// Reads fields; after the first that is not there, everything is zero and failed() holds.
class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}
  template <std::integral T>
  T number() {
    const auto field = take(sizeof(T));
    return field.empty() ? T{} : load_le<T>(field.data());
  }
  LogPosition position() { return LogPosition(number<std::int64_t>()); }
  bool flag() { return number<std::uint8_t>() != 0; }
  std::string text() {
    const auto size = number<std::uint32_t>();
    return std::string(as_text(take(size)));
  }
  Uuid uuid() {
    Uuid value;
    const auto field = take(value.bytes.size());
    std::copy(field.begin(), field.end(), value.bytes.begin());
    return value;
  }
  RecordEnd end() {
    RecordEnd value;
    value.place = position();
    value.data_end = position();
    value.scavenged = flag();
    return value;
  }
  Bytes rest() {
    const auto all = take(bytes_.size());
    return {all.begin(), all.end()};
  }
  ByteView take(std::size_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
    }
    if (failed_) {
      return {};
    }
    const auto field = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return field;
  }
  [[nodiscard]] bool complete() const { return !failed_ && bytes_.empty(); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  ByteView bytes_;
  bool failed_ = false;
};

struct Encoder {
  Bytes operator()(const Subscribe& m) const {
    Writer out(Kind::kSubscribe);
    out.number(m.version).text(m.node).uuid(m.instance).flag(m.read_only);
    out.number(m.cluster_size).number(m.chunk_size).number(m.term.value());
    out.end(m.writer).position(m.committed);
    out.number(static_cast<std::uint32_t>(m.epochs.size()));
    for (const auto& claim : m.epochs) {
      out.position(claim.epoch.position).number(claim.epoch.number.value()).uuid(claim.epoch.id);
      out.end(claim.before);
    }
    return out.take();
  }
  Bytes operator()(const Ack& m) const {
    return Writer(Kind::kAck).position(m.durable).number(m.round).take();
  }
  Bytes operator()(const Accepted& m) const {
    return Writer(Kind::kAccepted).number(m.term.value()).position(m.start).take();
  }
  Bytes operator()(const Truncate& m) const {
    return Writer(Kind::kTruncate).position(m.position).take();
  }
  Bytes operator()(const Refused& m) const { return Writer(Kind::kRefused).text(m.reason).take(); }
  Bytes operator()(const Batch& m) const {
    return Writer(Kind::kBatch).position(m.position).flag(m.last).rest(m.bytes).take();
  }
  Bytes operator()(const CompleteChunk& m) const {
    return Writer(Kind::kCompleteChunk).position(m.end).take();
  }
  Bytes operator()(const NewChunk& m) const {
    const auto header = log::encode_chunk_header(m.header);
    return Writer(Kind::kNewChunk).rest(header).take();
  }
  Bytes operator()(const RawChunk& m) const {
    return Writer(Kind::kRawChunk)
        .number(m.start.value())
        .number(m.end.value())
        .number(m.offset)
        .number(m.total)
        .rest(m.bytes)
        .take();
  }
  Bytes operator()(const Progress& m) const {
    return Writer(Kind::kProgress)
        .position(m.commit)
        .position(m.writer)
        .flag(m.caught_up)
        .flag(m.in_quorum)
        .number(m.round)
        .take();
  }
};

Subscribe read_subscribe(Reader& in) {
  Subscribe m;
  m.version = in.number<std::uint32_t>();
  m.node = in.text();
  m.instance = in.uuid();
  m.read_only = in.flag();
  m.cluster_size = in.number<std::int32_t>();
  m.chunk_size = in.number<std::int32_t>();
  m.term = EpochNumber(in.number<std::int32_t>());
  m.writer = in.end();
  m.committed = in.position();
  const auto count = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    EpochClaim claim;
    claim.epoch.position = in.position();
    claim.epoch.number = EpochNumber(in.number<std::int32_t>());
    claim.epoch.id = in.uuid();
    claim.before = in.end();
    m.epochs.push_back(claim);
  }
  return m;
}

Result<Message> read_new_chunk(Reader& in) {
  const auto bytes = in.rest();
  if (bytes.size() != log::kChunkHeaderSize) {
    return Error{Errc::kCorruption, "replication frame: chunk header of a wrong size"};
  }
  VERGER_TRY(const auto header, log::decode_chunk_header(bytes));
  return Message(NewChunk{header});
}

}  // namespace

Bytes encode(const Message& message) { return std::visit(Encoder{}, message); }

Result<Message> decode(ByteView frame) {
  Reader in(frame);
  const auto kind = static_cast<Kind>(in.number<std::uint8_t>());
  std::optional<Message> message;
  switch (kind) {
    case Kind::kSubscribe:
      message = read_subscribe(in);
      break;
    case Kind::kAck: {
      const auto durable = in.position();
      message = Ack{durable, in.number<std::uint64_t>()};
      break;
    }
    case Kind::kAccepted: {
      const EpochNumber term(in.number<std::int32_t>());
      message = Accepted{term, in.position()};
      break;
    }
    case Kind::kTruncate:
      message = Truncate{in.position()};
      break;
    case Kind::kRefused:
      message = Refused{in.text()};
      break;
    case Kind::kBatch: {
      Batch batch;
      batch.position = in.position();
      batch.last = in.flag();
      batch.bytes = in.rest();
      message = std::move(batch);
      break;
    }
    case Kind::kCompleteChunk:
      message = CompleteChunk{in.position()};
      break;
    case Kind::kNewChunk:
      return read_new_chunk(in);
    case Kind::kRawChunk: {
      RawChunk chunk;
      chunk.start = ChunkNumber(in.number<std::int32_t>());
      chunk.end = ChunkNumber(in.number<std::int32_t>());
      chunk.offset = in.number<std::uint64_t>();
      chunk.total = in.number<std::uint64_t>();
      chunk.bytes = in.rest();
      message = std::move(chunk);
      break;
    }
    case Kind::kProgress: {
      Progress progress;
      progress.commit = in.position();
      progress.writer = in.position();
      progress.caught_up = in.flag();
      progress.in_quorum = in.flag();
      progress.round = in.number<std::uint64_t>();
      message = progress;
      break;
    }
  }
  if (!message || !in.complete()) {
    return Error{Errc::kCorruption,
                 fmt::format("replication frame of {} bytes, kind {}: not as its format says",
                             frame.size(), frame.empty() ? 0 : static_cast<int>(frame[0]))};
  }
  return *std::move(message);
}

}  // namespace verger::node::replication
