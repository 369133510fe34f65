#include "nodeagent/node/replication_messages.h"

#include <gtest/gtest.h>

#include "engine/base/random.h"

namespace verger::node::replication {
namespace {

Bytes bytes_of(std::string_view text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

std::vector<Message> one_of_each() {
  SeededRandom random(1);
  Subscribe subscribe;
  subscribe.node = "10.0.0.1:2113";
  subscribe.instance = random.uuid();
  subscribe.read_only = true;
  subscribe.cluster_size = 3;
  subscribe.chunk_size = 65536;
  subscribe.term = EpochNumber(7);
  subscribe.writer = {LogPosition(65536), LogPosition(60000), false};
  subscribe.committed = LogPosition(123);
  log::Epoch epoch;
  epoch.position = LogPosition(99);
  epoch.number = EpochNumber(4);
  epoch.id = random.uuid();
  subscribe.epochs.push_back({epoch, {LogPosition(99), LogPosition(99), true}});
  log::ChunkHeader header;
  header.start = header.end = ChunkNumber(3);
  header.chunk_size = 65536;
  header.chunk_id = random.uuid();
  return {subscribe,
          Ack{LogPosition(5), 7},
          Accepted{EpochNumber(7), LogPosition(8)},
          Truncate{LogPosition(9)},
          Refused{"no"},
          Batch{LogPosition(10), false, bytes_of("records")},
          CompleteChunk{LogPosition(11)},
          NewChunk{header},
          RawChunk{ChunkNumber(1), ChunkNumber(2), 3, 4, bytes_of("raw")},
          Progress{LogPosition(1), LogPosition(2), true, false, 9}};
}

TEST(ReplicationMessages, AreReadAsTheyWereWritten) {
  for (const auto& message : one_of_each()) {
    const auto frame = encode(message);
    const auto read = decode(frame);
    ASSERT_TRUE(read.has_value()) << message.index() << ": " << read.error().message;
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(encode(*read), frame) << message.index();
  }
}

TEST(ReplicationMessages, ACutOrLengthenedFrameIsAnError) {
  for (const auto& message : one_of_each()) {
    auto frame = encode(message);
    const bool open_ended =
        std::holds_alternative<Batch>(message) || std::holds_alternative<RawChunk>(message);
    for (std::size_t size = 0; size < frame.size() && !open_ended; ++size) {
      EXPECT_FALSE(decode(ByteView(frame).first(size)).has_value()) << message.index();
    }
    frame.push_back(std::byte{0});
    EXPECT_EQ(decode(frame).has_value(), open_ended) << message.index();
  }
}

TEST(ReplicationMessages, ArbitraryBytesNeverCrash) {
  SeededRandom random(2);
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame(random.below(200));
    for (auto& byte : frame) {
      byte = static_cast<std::byte>(random.below(256));
    }
    if (!frame.empty() && i % 2 == 0) {
      frame[0] = static_cast<std::byte>(1 + random.below(10));
    }
    static_cast<void>(decode(frame));
  }
}

}  // namespace
}  // namespace verger::node::replication
