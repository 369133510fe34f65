#include "engine/base/cipher.h"

#include <algorithm>
#include <memory>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "engine/base/assert.h"
#include "engine/base/deleter.h"

namespace verger {
namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, Deleter<EVP_CIPHER_CTX_free>>;

const EVP_CIPHER* gcm_algorithm() {
  static const EVP_CIPHER* const kAlgorithm = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  return kAlgorithm;
}

// OpenSSL fails in this file only without memory or without the algorithm, other than where the
// tag is compared: nothing a caller could act on.
CipherContext cipher_context() {
  CipherContext context(EVP_CIPHER_CTX_new());
  VERGER_ASSERT(context != nullptr && gcm_algorithm() != nullptr);
  return context;
}

const unsigned char* raw(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(MutableBytes bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

Sha256Digest keyed_digest(ByteView key, ByteView message) {
  Sha256Digest digest{};
  unsigned int size = 0;
  VERGER_ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(message),
                     message.size(), raw(MutableBytes(digest)), &size) != nullptr &&
                size == digest.size());
  return digest;
}

Key256 derive_key(const Key256& key, ByteView salt, std::string_view purpose) {
  const Sha256Digest no_salt{};
  const auto extracted = keyed_digest(salt.empty() ? ByteView(no_salt) : salt, key);
  Bytes info(as_bytes(purpose).begin(), as_bytes(purpose).end());
  info.push_back(std::byte{1});
  return keyed_digest(extracted, info);
}

Key256 random_key(Random& random) {
  Key256 key{};
  for (std::size_t at = 0; at < key.size(); at += sizeof(std::uint64_t)) {
    store_le(key.data() + at, random.next());
  }
  return key;
}

namespace aes_gcm {

void seal(const Key256& key, const Nonce& nonce, ByteView bound, ByteView plain,
          MutableBytes sealed) {
  VERGER_ASSERT(sealed.size() == plain.size() + kTagSize);
  const auto context = cipher_context();
  int size = 0;
  bool done = EVP_EncryptInit_ex2(context.get(), gcm_algorithm(), raw(ByteView(key)),
                                  raw(ByteView(nonce)), nullptr) == 1;
  done = done && EVP_EncryptUpdate(context.get(), nullptr, &size, raw(bound),
                                   static_cast<int>(bound.size())) == 1;
  // Of nothing, OpenSSL makes the end of the message.
  done = done && (plain.empty() || EVP_EncryptUpdate(context.get(), raw(sealed), &size, raw(plain),
                                                     static_cast<int>(plain.size())) == 1);
  done = done && EVP_EncryptFinal_ex(context.get(), raw(sealed.subspan(plain.size())), &size) == 1;
  done = done && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize,
                                     raw(sealed.subspan(plain.size()))) == 1;
  VERGER_ASSERT(done);
}

bool open(const Key256& key, const Nonce& nonce, ByteView bound, ByteView sealed,
          MutableBytes plain) {
  if (sealed.size() < kTagSize || plain.size() != sealed.size() - kTagSize) {
    return false;
  }
  const auto context = cipher_context();
  int size = 0;
  bool done = EVP_DecryptInit_ex2(context.get(), gcm_algorithm(), raw(ByteView(key)),
                                  raw(ByteView(nonce)), nullptr) == 1;
  done = done && EVP_DecryptUpdate(context.get(), nullptr, &size, raw(bound),
                                   static_cast<int>(bound.size())) == 1;
  done = done && (plain.empty() || EVP_DecryptUpdate(context.get(), raw(plain), &size, raw(sealed),
                                                     static_cast<int>(plain.size())) == 1);
  std::array<std::byte, kTagSize> tag{};
  std::ranges::copy(sealed.last(kTagSize), tag.begin());
  done =
      done && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize, tag.data()) == 1;
  VERGER_ASSERT(done);
  std::array<std::byte, kTagSize> rest{};  // GCM writes nothing here
  return EVP_DecryptFinal_ex(context.get(), raw(MutableBytes(rest)), &size) == 1;
}

}  // namespace aes_gcm
}  // namespace verger
