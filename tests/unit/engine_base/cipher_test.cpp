#include "engine/base/cipher.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace verger {
namespace {

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

Key256 key_of(std::string_view hex) {
  Key256 key{};
  std::ranges::copy(from_hex(hex), key.begin());
  return key;
}

TEST(Cipher, SealsAsTheTestVectorsOfGcmSay) {
  // McGrew and Viega, "The Galois/Counter Mode of Operation", test case 16.
  const auto key = key_of("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  aes_gcm::Nonce nonce{};
  std::ranges::copy(from_hex("cafebabefacedbaddecaf888"), nonce.begin());
  const auto bound = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const auto plain = from_hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6"
      "b525b16aedf5aa0de657ba637b39");
  Bytes sealed(plain.size() + aes_gcm::kTagSize);
  aes_gcm::seal(key, nonce, bound, plain, sealed);
  EXPECT_EQ(
      to_hex(sealed),
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b10"
      "56828838c5f61e6393ba7a0abcc9f662"
      "76fc6ece0f4e1768cddf8853bb2d551b");
  Bytes opened(plain.size());
  ASSERT_TRUE(aes_gcm::open(key, nonce, bound, sealed, opened));
  EXPECT_EQ(opened, plain);
}

TEST(Cipher, FindsEachChangedBitAndOtherBoundBytes) {
  const auto key = key_of("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  const aes_gcm::Nonce nonce{std::byte{1}};
  const auto bound = as_bytes("header");
  for (const std::string text : {"", "a", "a longer text"}) {
    Bytes sealed(text.size() + aes_gcm::kTagSize);
    aes_gcm::seal(key, nonce, bound, as_bytes(text), sealed);
    Bytes opened(text.size());
    ASSERT_TRUE(aes_gcm::open(key, nonce, bound, sealed, opened));
    EXPECT_EQ(as_text(opened), text);
    EXPECT_FALSE(aes_gcm::open(key, nonce, as_bytes("Header"), sealed, opened));
    EXPECT_FALSE(aes_gcm::open(key, {std::byte{2}}, bound, sealed, opened));
    for (auto& byte : sealed) {
      for (int bit = 0; bit < 8; ++bit) {
        byte ^= std::byte{1} << bit;
        EXPECT_FALSE(aes_gcm::open(key, nonce, bound, sealed, opened));
        byte ^= std::byte{1} << bit;
      }
    }
    EXPECT_FALSE(aes_gcm::open(key, nonce, bound, ByteView(sealed).first(sealed.size() - 1),
                               MutableBytes(opened)));
  }
}

TEST(Cipher, DerivesKeysAsRfc5869Says) {
  // RFC 4231, test case 1.
  EXPECT_EQ(to_hex(keyed_digest(Bytes(20, std::byte{0x0b}), as_bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  const Key256 key{std::byte{7}};
  const auto one = derive_key(key, as_bytes("salt"), "one");
  EXPECT_EQ(one, derive_key(key, as_bytes("salt"), "one"));
  EXPECT_NE(one, derive_key(key, as_bytes("salt"), "two"));
  EXPECT_NE(one, derive_key(key, as_bytes("tlas"), "one"));
  EXPECT_NE(one, derive_key(Key256{std::byte{8}}, as_bytes("salt"), "one"));
  // openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt hexkey:07000… -kdfopt salt:salt
  //   -kdfopt info:one HKDF
  EXPECT_EQ(to_hex(one), "4c8bce5658ec974873a41d290182237be185af85962ff8a67e3c51b42001968e");
}

}  // namespace
}  // namespace verger
