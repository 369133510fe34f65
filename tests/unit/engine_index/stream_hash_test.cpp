#include "engine/index/stream_hash.h"

#include <fstream>

#include "tests/support/fixtures.h"

namespace verger::index {
namespace {

/// SMHasher's verification value: keys {}, {0}, {0,1}, ... with seed 256 - i, hashed together.
std::uint32_t verification(std::uint32_t (*hash)(ByteView, std::uint32_t)) {
  Bytes key;
  Bytes hashes;
  for (std::uint32_t i = 0; i < 256; ++i) {
    append_le(hashes, hash(key, 256 - i));
    key.push_back(std::byte(i));
  }
  return hash(hashes, 0);
}

TEST(StreamHash, HasTheVerificationValuesOfTheServersHashers) {
  EXPECT_EQ(verification(&xx_draft), 0x56D249B1U);
  EXPECT_EQ(verification(&murmur3), 0xB0F57EE3U);
}

TEST(StreamHash, GivesTheHashesOfTheReference) {
  const std::vector<std::pair<std::string_view, std::uint64_t>> rows{
      {"", 0x02cc5d05821f9986U},
      {"a", 0xe4dbda76cfb6533eU},
      {"ab-1", 0x97be6233ad91dacbU},
      {"$settings", 0xe6578ffe72e8f754U},
      {"$scavenges", 0xe13439f19243cbf6U},
      {"$$$scavenges", 0x16e9c795db48b28aU},
      {"$scavengePoints", 0x8549ef7f2907d088U},
      {"account-1", 0xd23edcdcfb7ce71fU},
      {"$$account-1", 0xb339488fb5d947abU},
      {"$ce-account", 0xc9da97f0171b6519U},
      {"\xC3\xBCn\xC3\xAF"
       "c\xC3\xB6"
       "d\xC3\xA9",
       0xba38d26928a1e511U},
      {"stream-with-a-name-longer-than-sixteen-chars", 0xd62a2b36342c6981U},
      {"LPN-FC002_LPK51001", 0x7aeae8d25f815f99U},
      {"account--696193173", 0x7aeae8d2cd208f86U},
  };
  for (const auto& [name, expected] : rows) {
    EXPECT_EQ(hash_stream(name).value(), expected) << name;
  }
}

TEST(StreamHash, AgreesForEveryPairOfCollidingNames) {
  std::ifstream file(test::fixtures_directory() / "hash-collisions.tsv");
  std::string line;
  int pairs = 0;
  while (std::getline(file, line)) {
    const auto first = line.find('\t');
    const auto second = line.find('\t', first + 1);
    if (line.starts_with('#') || second == std::string::npos) {
      continue;
    }
    ++pairs;
    const auto expected = std::stoull(line.substr(second + 1), nullptr, 16);
    EXPECT_EQ(hash_stream(line.substr(0, first)).value(), expected) << line;
    EXPECT_EQ(hash_stream(line.substr(first + 1, second - first - 1)).value(), expected) << line;
  }
  EXPECT_GT(pairs, 0);
}

TEST(StreamHash, ReadsNamesOutsideTheBasicPlaneAsSurrogatePairs) {
  // U+1F4A9 is D83D DCA9 in UTF-16.
  Bytes units;
  append_le<std::uint16_t>(units, 0xD83D);
  append_le<std::uint16_t>(units, 0xDCA9);
  const auto hash = hash_stream("\xF0\x9F\x92\xA9").value();
  EXPECT_EQ(hash >> 32U, xx_draft(units, 0xC58F1A7BU));
  EXPECT_EQ(hash & 0xFFFFFFFFU, murmur3(units, 0xC58F1A7BU));
}

TEST(StreamHash, TakesInvalidUtf8AsTheReplacementCharacter) {
  EXPECT_EQ(hash_stream("\xFF"), hash_stream("\xEF\xBF\xBD"));
  EXPECT_EQ(hash_stream(std::string(2000, '\xFF')).value(), [] {
    std::string text;
    for (int i = 0; i < 2000; ++i) {
      text += "\xEF\xBF\xBD";
    }
    return hash_stream(text).value();
  }());
}

}  // namespace
}  // namespace verger::index
