#pragma once

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "engine/object_store/s3_store.h"
#include "tests/support/object_store/s3_server.h"
#include "tests/support/results.h"

namespace verger::object_store {

using test::S3Call;
using test::S3Fault;
using test::S3Server;

/// A store below "s3://bucket/orders" with small parts, whose waits pass at once.
class StoreCase : public ::testing::Test {
 protected:
  StoreCase() { settings.endpoint = server.url(); }

  S3Store& store() {
    if (!store_) {
      store_ = std::make_unique<S3Store>(
          settings, random, null_log(),
          [this](std::chrono::milliseconds time) { waits.push_back(time); });
    }
    return *store_;
  }

  Result<Sha256Digest> store_blob(const std::string& content) {
    const auto digest = sha256(as_bytes(content));
    VERGER_TRY(const auto writer, store().create_blob());
    // In pieces that are no divisors of a part.
    for (std::size_t at = 0; at < content.size(); at += 7) {
      VERGER_RETURN_IF_ERROR(writer->append(as_bytes(content.substr(at, 7))));
    }
    VERGER_RETURN_IF_ERROR(writer->commit(digest));
    return digest;
  }

  Result<std::string> read_blob(const Sha256Digest& digest, std::size_t piece = 1U << 20U) {
    VERGER_TRY(const auto reader, store().open_blob(digest));
    std::string content;
    while (content.size() < reader->size()) {
      Bytes part(std::min<std::uint64_t>(piece, reader->size() - content.size()));
      VERGER_RETURN_IF_ERROR(reader->read_exact(content.size(), part));
      content += as_text(part);
    }
    return content;
  }

  /// The first `times` requests that `which` fits fail so.
  template <class Which>
  void fail(S3Fault fault, Which which, int times = 1) {
    server.on_call([=](const S3Call& call) mutable {
      return which(call) && times-- > 0 ? std::optional(fault) : std::nullopt;
    });
  }

  static std::string blob_key(const Sha256Digest& digest) {
    const auto hex = to_hex(digest);
    return "orders/blobs/" + hex.substr(0, 2) + "/" + hex;
  }
  [[nodiscard]] std::size_t calls_with(const std::string& text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        server.calls(), [&](const std::string& call) { return call.contains(text); }));
  }

  S3Server server;
  SeededRandom random{7};
  std::vector<std::chrono::milliseconds> waits;
  S3Settings settings{.bucket = "bucket",
                      .prefix = "orders/",
                      .path_style = true,
                      .credentials = {.access_key = "key-id", .secret_key = "secret"},
                      .part_size = 32};

 private:
  std::unique_ptr<S3Store> store_;
};

/// Of no digest's form, and of more than three parts.
inline const std::string kLongContent = [] {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += std::to_string(1000 + i) + ",";
  }
  return text;
}();

}  // namespace verger::object_store
