#include "engine/base/digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/base/background_md5.h"
#include "engine/base/md5_lanes.h"
#include "engine/base/random.h"
#include "engine/base/sha256_lanes.h"
#include "tests/support/results.h"

namespace verger {
namespace {

TEST(Digest, HasTheKnownValues) {
  EXPECT_EQ(to_hex(md5(as_bytes(""))), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(to_hex(md5(as_bytes("abc"))), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(to_hex(sha256(as_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, DoesNotDependOnHowTheBytesArrive) {
  Sha256 digest;
  digest.update(as_bytes("a"));
  digest.update(as_bytes(""));
  digest.update(as_bytes("bc"));
  EXPECT_EQ(digest.finish(), sha256(as_bytes("abc")));
}

TEST(Digest, InTheBackgroundIsTheSame) {
  EXPECT_EQ(value(BackgroundMd5().finish()), md5({}));
  BackgroundMd5 background;
  Bytes all;
  for (std::size_t n = 0; n < 200; ++n) {  // pieces of sizes that grow and shrink
    const Bytes piece(n * 7919 % 3001, static_cast<std::byte>(n));
    background.update(piece);
    append_bytes(all, piece);
  }
  EXPECT_EQ(value(background.finish()), md5(all));
  BackgroundMd5 abandoned;
  abandoned.update(all);
}

TEST(Digest, InTheBackgroundGoesWithThePiecesToASink) {
  Bytes all;
  Bytes sunk;
  BackgroundMd5 background(std::make_shared<Md5Thread>(), [&](ByteView piece) {
    append_bytes(sunk, piece);
    return Result<void>();
  });
  for (std::size_t n = 0; n < 50; ++n) {
    const Bytes piece(1 + n * 7919 % 3001, static_cast<std::byte>(n));
    background.update(piece);
    append_bytes(all, piece);
  }
  EXPECT_EQ(value(background.finish()), md5(all));
  EXPECT_EQ(sunk, all);
}

TEST(Digest, InTheBackgroundEndsWithTheFirstErrorOfItsSink) {
  int pieces = 0;
  BackgroundMd5 background(std::make_shared<Md5Thread>(), [&](ByteView /*piece*/) -> Result<void> {
    if (++pieces < 3) {
      return {};
    }
    return Error{Errc::kNoSpace, fmt::format("piece {}", pieces)};
  });
  for (int n = 0; n < 20; ++n) {
    background.update(Bytes(100));
  }
  const auto digest = background.finish();
  ASSERT_FALSE(digest);
  EXPECT_EQ(digest.error().code, Errc::kNoSpace);
  EXPECT_EQ(digest.error().message, "piece 3");
  EXPECT_EQ(pieces, 3) << "it gets no more";
}

TEST(Digest, OfMessagesThatShareAThreadIsThatOfEach) {
  SeededRandom random(11);
  const auto thread = std::make_shared<Md5Thread>();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<BackgroundMd5>> messages;
    std::vector<Bytes> all(1 + random.below(Md5Thread::kMostMessages));
    for (std::size_t n = 0; n < all.size(); ++n) {
      messages.push_back(std::make_unique<BackgroundMd5>(thread));
    }
    for (int piece = 0; piece < 100; ++piece) {  // some messages get more pieces than others
      const auto to = random.below(1 + random.below(all.size()));
      Bytes bytes(random.below(3000), static_cast<std::byte>(piece));
      append_bytes(all[to], bytes);
      if (piece % 2 == 0) {
        messages[to]->update(bytes);
      } else {
        messages[to]->take(bytes);
        EXPECT_TRUE(bytes.empty());
      }
    }
    messages[random.below(messages.size())].reset();  // dropped in the middle
    for (std::size_t n = 0; n < messages.size(); ++n) {
      if (messages[n] != nullptr) {
        EXPECT_EQ(value(messages[n]->finish()), md5(all[n]))
            << "round " << round << ", message " << n;
      }
    }
  }
}

TEST(Digest, OfManyAtOnceIsThatOfEach) {
  SeededRandom random(7);
  for (int round = 0; round < 60; ++round) {
    const auto lanes = 1 + random.below(Md5Lanes::kLanes);
    Md5Lanes hashes;
    std::array<Bytes, Md5Lanes::kLanes> messages;
    for (int part = 0; part < 5; ++part) {
      std::array<Bytes, Md5Lanes::kLanes> bytes;
      std::array<ByteView, Md5Lanes::kLanes> pieces;
      for (std::size_t n = 0; n < lanes; ++n) {
        bytes[n].resize(random.below(round % 2 == 0 ? 200 : 3000));
        for (auto& byte : bytes[n]) {
          byte = static_cast<std::byte>(random.below(256));
        }
        pieces[n] = bytes[n];
        append_bytes(messages[n], bytes[n]);
      }
      hashes.update(std::span(pieces).first(lanes));
    }
    for (std::size_t n = 0; n < lanes; ++n) {
      EXPECT_EQ(hashes.finish(n), md5(messages[n])) << "round " << round << ", lane " << n;
    }
    hashes.update(std::array{as_bytes("abc")});
    EXPECT_EQ(hashes.finish(0), md5(as_bytes("abc"))) << "a lane is used again";
  }
}

TEST(Digest, OfManyShortMessagesIsThatOfEach) {
  SeededRandom random(17);
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<Bytes> messages(count);
    for (auto& message : messages) {  // around the ends of blocks, and some that are much longer
      message.resize(random.below(random.below(8) == 0 ? 5000 : 200));
      for (auto& byte : message) {
        byte = static_cast<std::byte>(random.below(256));
      }
    }
    const std::vector<ByteView> views(messages.begin(), messages.end());
    std::vector<Sha256Digest> digests(count);
    sha256_of_each(views, digests);
    for (std::size_t n = 0; n < count; ++n) {
      EXPECT_EQ(digests[n], sha256(messages[n])) << count << " messages, number " << n;
    }
  }
}

TEST(Digest, OfMessagesOfEverySizeIsThatOfEach) {
  Bytes bytes(300);
  SeededRandom random(19);
  for (auto& byte : bytes) {
    byte = static_cast<std::byte>(random.below(256));
  }
  std::vector<ByteView> messages;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    messages.push_back(ByteView(bytes).first(size));
  }
  std::vector<Sha256Digest> digests(messages.size());
  sha256_of_each(messages, digests);
  for (std::size_t size = 0; size < messages.size(); ++size) {
    EXPECT_EQ(digests[size], sha256(messages[size])) << size << " bytes";
  }
}

TEST(Digest, ContinuesFromACopyOfItsState) {
  Md5 first;
  first.update(as_bytes("a"));
  Md5 second = first;
  second.update(as_bytes("bc"));
  first.update(as_bytes("x"));
  EXPECT_EQ(second.finish(), md5(as_bytes("abc")));
  EXPECT_EQ(first.finish(), md5(as_bytes("ax")));

  Sha256 original;
  original.update(as_bytes("a"));
  Sha256 assigned;
  assigned.update(as_bytes("something else"));
  assigned = original;
  assigned.update(as_bytes("bc"));
  EXPECT_EQ(assigned.finish(), sha256(as_bytes("abc")));
}

}  // namespace
}  // namespace verger
