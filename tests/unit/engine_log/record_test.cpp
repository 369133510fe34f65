#include "engine/log/record.h"

#include <gtest/gtest.h>
#include <limits>

#include "tests/support/results.h"
#include "tests/unit/engine_log/hex.h"

namespace verger::log {
namespace {

constexpr Ticks kNewYear2024{638396640000000000};

/// Example 7.2 of the format: one event of the stream test-1.
const char* const kPrepareHex = R"(
  68 00 00 00  00 01  00 00 00 00 00 00 00 00  27 01  00 00 00 00 00 00 00 00  00 00 00 00
  ff ff ff ff ff ff ff ff  06 74 65 73 74 2d 31
  11 11 11 11 22 22 33 33 44 44 55 55 55 55 55 55  aa aa aa aa bb bb cc cc dd dd ee ee ee ee ee ee
  00 c0 00 99 5c 0a dc 08  09 54 65 73 74 45 76 65 6e 74
  07 00 00 00  7b 22 61 22 3a 31 7d  00 00 00 00  68 00 00 00)";

Prepare example_prepare() {
  Prepare prepare;
  prepare.position = LogPosition(0);
  prepare.flags = 0x0127;
  prepare.transaction_position = LogPosition(0);
  prepare.expected_version = -1;
  prepare.stream = "test-1";
  prepare.event_id = value(Uuid::parse("11111111-2222-3333-4444-555555555555"));
  prepare.correlation_id = value(Uuid::parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"));
  prepare.timestamp = kNewYear2024;
  prepare.type = "TestEvent";
  prepare.data = as_bytes(R"({"a":1})");
  return prepare;
}

Bytes framed(const Record& record) {
  Bytes out;
  append_framed(out, record);
  EXPECT_EQ(out.size(), record_size(record) + kFramingSize);
  return out;
}

Record decoded(const Bytes& frame) {
  return value(decode_record(ByteView(frame).subspan(4, frame.size() - kFramingSize)));
}

TEST(Record, APrepareHasTheBytesOfTheExample) {
  const Bytes want = from_hex(kPrepareHex);
  EXPECT_EQ(to_hex(framed(example_prepare())), to_hex(want));
  const auto prepare = std::get<Prepare>(decoded(want));
  EXPECT_EQ(prepare.stream, "test-1");
  EXPECT_EQ(prepare.type, "TestEvent");
  EXPECT_EQ(prepare.event_number().value(), 0);
  EXPECT_EQ(as_text(prepare.data), R"({"a":1})");
  EXPECT_TRUE(prepare.metadata.empty());
  EXPECT_EQ(prepare.correlation_id.to_string(), "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
  EXPECT_EQ(prepare.timestamp, kNewYear2024);
}

TEST(Record, ACommitHasTheBytesOfTheExample) {
  const Bytes want = from_hex(R"(
    3a 00 00 00  01 01  e8 03 00 00 00 00 00 00  bc 02 00 00 00 00 00 00  05 00 00 00 00 00 00 00
    e8 03 00 00 00 00 00 00  aa aa aa aa bb bb cc cc dd dd ee ee ee ee ee ee
    00 c0 00 99 5c 0a dc 08  3a 00 00 00)");
  Commit commit;
  commit.position = LogPosition(1000);
  commit.transaction_position = LogPosition(700);
  commit.first_event_number = EventNumber(5);
  commit.sort_key = 1000;
  commit.correlation_id = value(Uuid::parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"));
  commit.timestamp = kNewYear2024;
  EXPECT_EQ(to_hex(framed(commit)), to_hex(want));
  EXPECT_EQ(to_hex(framed(decoded(want))), to_hex(want));
}

TEST(Record, VersionZeroWidensItsNumbersAndNarrowsThemAgain) {
  Prepare prepare = example_prepare();
  prepare.version = 0;
  for (const std::int64_t number :
       {std::int64_t{-2}, std::int64_t{7}, std::int64_t{0x7ffffffd}, kDeletedStream.value() - 1}) {
    prepare.expected_version = number;
    const Bytes bytes = framed(prepare);
    EXPECT_EQ(bytes.size(), 108U);
    EXPECT_EQ(std::get<Prepare>(decoded(bytes)).expected_version, number);
  }
  EXPECT_EQ(to_hex(ByteView(framed(prepare)).subspan(28, 4)), "feffff7f");
  Commit commit;
  commit.version = 0;
  commit.correlation_id = prepare.correlation_id;
  for (const std::int64_t number : {std::int64_t{3}, kDeletedStream.value()}) {
    commit.first_event_number = EventNumber(number);
    const Bytes bytes = framed(commit);
    EXPECT_EQ(bytes.size(), 62U);
    EXPECT_EQ(std::get<Commit>(decoded(bytes)).first_event_number.value(), number);
  }
  EXPECT_EQ(to_hex(ByteView(framed(commit)).subspan(22, 4)), "ffffff7f");
}

TEST(Record, LongNamesHaveATwoByteLength) {
  Prepare prepare = example_prepare();
  const std::string name(300, 'x');
  prepare.stream = name;
  prepare.type = "";
  const Bytes bytes = framed(prepare);
  EXPECT_EQ(to_hex(ByteView(bytes).subspan(36, 3)), "ac0278");
  EXPECT_EQ(std::get<Prepare>(decoded(bytes)).stream, name);
}

TEST(Record, UnknownFlagsStay) {
  Prepare prepare = example_prepare();
  prepare.flags = 0xD427;
  const Bytes bytes = framed(prepare);
  EXPECT_EQ(std::get<Prepare>(decoded(bytes)).flags, 0xD427);
}

Errc refusal(Bytes frame, std::size_t offset, std::uint8_t byte) {
  frame[offset] = std::byte{byte};
  const auto record = decode_record(ByteView(frame).subspan(4, frame.size() - kFramingSize));
  EXPECT_FALSE(record.has_value());
  return record ? Errc::kExists : record.error().code;
}

TEST(Record, RefusesWhatItDoesNotKnow) {
  const Bytes prepare = framed(example_prepare());
  EXPECT_EQ(refusal(prepare, 4, 3), Errc::kUnsupported) << "a record type of log format V3";
  EXPECT_EQ(refusal(prepare, 4, 12), Errc::kCorruption);
  EXPECT_EQ(refusal(prepare, 5, 2), Errc::kUnsupported) << "a version not made yet";
  EXPECT_EQ(refusal(prepare, 0x0d, 0x80), Errc::kCorruption) << "a negative position";
  EXPECT_EQ(refusal(prepare, 0x17, 0x80), Errc::kCorruption) << "a negative transaction position";
  EXPECT_EQ(refusal(prepare, 0x24, 0), Errc::kCorruption) << "a stream without a name";
  EXPECT_EQ(refusal(prepare, 0x52, 0x7f), Errc::kCorruption) << "a time out of range";
  EXPECT_EQ(refusal(prepare, 0x60, 0x80), Errc::kCorruption) << "a negative data size";
  EXPECT_EQ(refusal(prepare, 0x5d, 6), Errc::kCorruption) << "bytes left over";
  EXPECT_EQ(refusal(prepare, 0x5d, 8), Errc::kCorruption) << "bytes missing";
  const Bytes system = framed(SystemRecord{LogPosition(0), kNewYear2024, as_bytes("{}")});
  EXPECT_EQ(refusal(system, 5, 1), Errc::kUnsupported) << "an epoch of log format V3";
  EXPECT_EQ(refusal(system, 0x16, 0), Errc::kCorruption);
  EXPECT_EQ(refusal(system, 0x17, 1), Errc::kCorruption) << "an epoch in binary form";
}

TEST(Record, SurvivesEveryTruncationAndEveryFlippedByte) {
  const Bytes frame = framed(example_prepare());
  const ByteView payload = ByteView(frame).subspan(4, frame.size() - kFramingSize);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decode_record(payload.first(size)).has_value()) << size;
  }
  for (std::size_t at = 0; at < payload.size(); ++at) {
    for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
      Bytes damaged(payload.begin(), payload.end());
      damaged[at] ^= std::byte{static_cast<unsigned char>(mask)};
      if (const auto record = decode_record(damaged)) {
        Bytes again;
        append_framed(again, *record);
        EXPECT_GT(again.size(), 8U);
      }
    }
  }
}

/// With the lengths of `payload` around it.
Bytes frame_of(ByteView payload) {
  Bytes frame;
  append_le(frame, static_cast<std::int32_t>(payload.size()));
  append_bytes(frame, payload);
  append_le(frame, static_cast<std::int32_t>(payload.size()));
  return frame;
}

/// Says whether the frame could be decoded; if so, whether it is canonical has to be what writing
/// the record again shows.
bool agrees_with_writing(const Bytes& frame) {
  const auto record = decode_record(ByteView(frame).subspan(4, frame.size() - kFramingSize));
  if (record) {
    EXPECT_EQ(is_canonical(*record, frame), same_bytes(framed(*record), frame)) << to_hex(frame);
  }
  return record.has_value();
}

TEST(Record, IsCanonicalWhenWritingItAgainGivesItsBytes) {
  Prepare old = example_prepare();
  old.version = 0;
  old.expected_version = std::numeric_limits<std::int64_t>::max() - 1;
  Commit commit;
  commit.version = 0;
  commit.first_event_number = kDeletedStream;
  const Record records[] = {example_prepare(), old, commit, Commit{},
                            SystemRecord{LogPosition(0), kNewYear2024, as_bytes("{}")}};
  std::size_t decodable = 0;
  for (const auto& record : records) {
    const Bytes frame = framed(record);
    EXPECT_TRUE(is_canonical(record, frame));
    for (std::size_t at = 4; at < frame.size() - 4; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        Bytes other = frame;
        other[at] ^= std::byte{1} << bit;
        decodable += agrees_with_writing(other) ? 1 : 0;
      }
      // One byte more or less, or a length in one byte more than it needs.
      const auto payload = ByteView(frame).subspan(4, frame.size() - kFramingSize);
      const auto head = payload.first(at - 4);
      const auto rest = payload.subspan(at - 3);
      Bytes longer(head.begin(), head.end());
      longer.push_back(payload[at - 4] | std::byte{0x80});
      longer.push_back(std::byte{0});
      append_bytes(longer, rest);
      decodable += agrees_with_writing(frame_of(longer)) ? 1 : 0;
      Bytes shorter(head.begin(), head.end());
      append_bytes(shorter, rest);
      decodable += agrees_with_writing(frame_of(shorter)) ? 1 : 0;
    }
  }
  EXPECT_GT(decodable, 1000U);
  Bytes stretched = framed(example_prepare());
  stretched[36] = std::byte{0x86};  // the name's length, 6
  stretched.insert(stretched.begin() + 37, std::byte{0});
  const auto frame = frame_of(ByteView(stretched).subspan(4, stretched.size() - kFramingSize));
  ASSERT_TRUE(agrees_with_writing(frame));
  EXPECT_FALSE(is_canonical(decoded(frame), frame));
}

}  // namespace
}  // namespace verger::log
