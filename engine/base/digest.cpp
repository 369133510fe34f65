#include "engine/base/digest.h"

#include <openssl/evp.h>

#include "engine/base/assert.h"
#include "engine/base/deleter.h"

namespace verger {
namespace {

using ContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

// Fetched once: a lookup for each digest costs more than hashing a short record.
const EVP_MD* md5_algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "MD5", nullptr);
  return kAlgorithm;
}
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kAlgorithm;
}

// OpenSSL fails here only without memory or without the algorithm (a build that forbids MD5, with
// which no chunk could be read): nothing a caller could act on.
ContextPtr start(const EVP_MD* algorithm) {
  ContextPtr context(EVP_MD_CTX_new());
  VERGER_ASSERT(algorithm != nullptr && context != nullptr);
  VERGER_ASSERT(EVP_DigestInit_ex(context.get(), algorithm, nullptr) == 1);
  return context;
}

ContextPtr copy_of(const EVP_MD_CTX* other) {
  ContextPtr context(EVP_MD_CTX_new());
  VERGER_ASSERT(context != nullptr && EVP_MD_CTX_copy_ex(context.get(), other) == 1);
  return context;
}

template <class Digest>
Digest finish_context(EVP_MD_CTX* context) {
  Digest digest;
  unsigned size = 0;
  VERGER_ASSERT(
      EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), &size) == 1 &&
      size == digest.size());
  return digest;
}

template <class Digest>
Digest digest_with(EVP_MD_CTX* context, ByteView bytes) {
  VERGER_ASSERT(EVP_DigestInit_ex2(context, nullptr, nullptr) == 1 &&
                EVP_DigestUpdate(context, bytes.data(), bytes.size()) == 1);
  return finish_context<Digest>(context);
}

}  // namespace

struct Md5::Context {
  ContextPtr evp;
};
Md5::Md5() : context_(std::make_unique<Context>(start(md5_algorithm()))) {}
Md5::Md5(const Md5& other)
    : context_(std::make_unique<Context>(copy_of(other.context_->evp.get()))) {}
Md5& Md5::operator=(const Md5& other) {
  if (this != &other) {
    *this = Md5(other);
  }
  return *this;
}
Md5::Md5(Md5&&) noexcept = default;
Md5& Md5::operator=(Md5&&) noexcept = default;
Md5::~Md5() = default;
void Md5::update(ByteView bytes) {
  VERGER_ASSERT(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1);
}
Md5Digest Md5::finish() { return finish_context<Md5Digest>(context_->evp.get()); }

struct Sha256::Context {
  ContextPtr evp;
};
Sha256::Sha256() : context_(std::make_unique<Context>(start(sha256_algorithm()))) {}
Sha256::Sha256(const Sha256& other)
    : context_(std::make_unique<Context>(copy_of(other.context_->evp.get()))) {}
Sha256& Sha256::operator=(const Sha256& other) {
  if (this != &other) {
    *this = Sha256(other);
  }
  return *this;
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;
void Sha256::update(ByteView bytes) {
  VERGER_ASSERT(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1);
}
Sha256Digest Sha256::finish() { return finish_context<Sha256Digest>(context_->evp.get()); }

Md5Digest md5(ByteView bytes) {
  // Each thread's context is used again: to make one costs more than hashing a short record.
  static thread_local const auto kContext = start(md5_algorithm());
  return digest_with<Md5Digest>(kContext.get(), bytes);
}

Sha256Digest sha256(ByteView bytes) {
  static thread_local const auto kContext = start(sha256_algorithm());
  return digest_with<Sha256Digest>(kContext.get(), bytes);
}

std::string to_hex(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4U];
    text += kDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

}  // namespace verger
