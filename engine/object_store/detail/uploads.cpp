#include "engine/object_store/detail/uploads.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/object_store/detail/objects.h"

namespace verger::object_store::detail {
namespace {

/// The bytes of the MD5 that an ETag is, without its quotes; empty: it is something else.
Bytes md5_in(std::string_view etag) {
  constexpr std::size_t kDigits = 32;
  if (etag.size() != kDigits + 2) {
    return {};
  }
  Bytes bytes;
  for (std::size_t i = 1; i <= kDigits; i += 2) {
    const auto value = [](char digit) {
      return digit >= '0' && digit <= '9'   ? digit - '0'
             : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                            : -1;
    };
    const int high = value(etag[i]);
    const int low = value(etag[i + 1]);
    if (high < 0 || low < 0) {
      return {};
    }
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

std::string copy_source(const S3Requests& requests, const std::string& key) {
  const auto& settings = requests.settings();
  return fmt::format("x-amz-copy-source: /{}/{}{}", settings.bucket, settings.prefix, key);
}

S3Request abort_request(const std::string& key, const std::string& id) {
  return {.method = Method::kDelete, .key = key, .query = {{"uploadId", id}}};
}

Result<void> copy_in_parts(S3Requests& requests, const std::string& from, const std::string& to,
                           std::uint64_t size) {
  VERGER_TRY(auto upload, Upload::begin(requests, to));
  const auto all = [&]() -> Result<void> {
    while (upload.size() < size) {
      const auto part = std::min(requests.settings().copy_size, size - upload.size());
      VERGER_RETURN_IF_ERROR(upload.add_copy(from, upload.size(), part));
    }
    return upload.complete();
  };
  auto done = all();
  if (!done) {
    upload.abort();
  }
  return done;
}

}  // namespace

Result<Upload> Upload::begin(S3Requests& requests, std::string key) {
  // A lost answer leaves an upload without parts: a leftover.
  VERGER_TRY(const auto answer,
             requests.send({.method = Method::kPost, .key = key, .query = {{"uploads", ""}}}));
  auto id = xml_text(as_text(answer.outcome.body), "UploadId");
  if (id.empty()) {
    return Error{Errc::kIo, fmt::format("{}: the object storage began an upload without an id",
                                        requests.name_of(key))};
  }
  return Upload(requests, std::move(key), std::move(id));
}

S3Request Upload::part_request() const {
  return {.method = Method::kPut,
          .key = key_,
          .query = {{"partNumber", fmt::to_string(etags_.size() + 1)}, {"uploadId", id_}}};
}

Result<void> Upload::count_part(const std::string& etag, std::uint64_t size) {
  if (etag.empty()) {
    return Error{Errc::kIo, fmt::format("{}: the object storage took a part without an ETag",
                                        requests_->name_of(key_))};
  }
  etags_.push_back(etag);
  size_ += size;
  return {};
}

Result<void> Upload::add(ByteView part) {
  auto request = part_request();
  request.body = part;
  VERGER_TRY(const auto answer, requests_->send(request));
  return count_part(answer.outcome.header("etag"), part.size());
}

Result<void> Upload::add_copy(const std::string& from, std::uint64_t offset, std::uint64_t size) {
  auto request = part_request();
  request.headers = {
      copy_source(*requests_, from),
      fmt::format("x-amz-copy-source-range: bytes={}-{}", offset, offset + size - 1)};
  request.server_side_bytes = size;
  VERGER_TRY(const auto answer, requests_->send(request));
  return count_part(xml_text(as_text(answer.outcome.body), "ETag"), size);
}

std::string Upload::expected_etag() const {
  Bytes all;
  for (const auto& etag : etags_) {
    const auto one = md5_in(etag);
    if (one.empty()) {
      return {};
    }
    append_bytes(all, one);
  }
  return fmt::format("{}-{}", to_hex(md5(all)), etags_.size());
}

Result<bool> Upload::is_there() const {
  VERGER_TRY(const auto found, look_at_object(*requests_, key_));
  if (!found || found->size != size_) {
    return false;
  }
  const auto expected = expected_etag();
  return expected.empty() || !found->etag.contains('-') || found->etag == expected;
}

Result<void> Upload::complete() {
  std::string body = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags_.size(); ++i) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                        xml_escaped(etags_[i]));
  }
  body += "</CompleteMultipartUpload>";
  // When the answer is lost the upload is complete, or it is not: what is there says so. Completing
  // it again would meet an upload that is no more.
  auto done = requests_->send({.method = Method::kPost,
                               .key = key_,
                               .query = {{"uploadId", id_}},
                               .body = as_bytes(body),
                               .server_side_bytes = size_},
                              [this] { return is_there(); });
  if (!done && done.error().code != Errc::kNotFound && done.error().code != Errc::kUnavailable) {
    return done.error();
  }
  VERGER_TRY(const bool there, is_there());
  if (there) {
    return {};
  }
  if (!done) {
    return done.error();
  }
  return Error{Errc::kIo, fmt::format("{}: the upload was completed, but an object of {} bytes is "
                                      "not there",
                                      requests_->name_of(key_), size_)};
}

void Upload::abort() {
  auto request = abort_request(key_, id_);
  request.attempts = 2;
  if (const auto done = requests_->send_if_there(request); !done) {
    requests_->log().warning(
        "an upload cannot be aborted; deleting backups removes it later",
        {{"object", requests_->name_of(key_)}, {"problem", done.error().message}});
  }
}

Result<void> copy_object(S3Requests& requests, const std::string& from, const std::string& to,
                         std::uint64_t size) {
  if (size > requests.settings().copy_size) {
    return copy_in_parts(requests, from, to, size);
  }
  // Done twice it is the same.
  VERGER_RETURN_IF_ERROR(requests.send({.method = Method::kPut,
                                        .key = to,
                                        .headers = {copy_source(requests, from)},
                                        .server_side_bytes = size}));
  VERGER_TRY(const auto found, look_at_object(requests, to));
  if (!found || found->size != size) {
    return Error{Errc::kIo, fmt::format("{}: was copied, but an object of {} bytes is not there",
                                        requests.name_of(to), size)};
  }
  return {};
}

Result<std::optional<std::vector<UnfinishedUpload>>> unfinished_uploads(S3Requests& requests,
                                                                        const std::string& start) {
  const auto& prefix = requests.settings().prefix;
  std::vector<UnfinishedUpload> found;
  std::optional<UnfinishedUpload> next;
  do {
    S3Request request;
    if (next) {
      request.query.emplace_back("key-marker", next->key);
    }
    request.query.emplace_back("prefix", prefix + start);
    if (next && !next->id.empty()) {
      request.query.emplace_back("upload-id-marker", next->id);
    }
    request.query.emplace_back("uploads", "");
    VERGER_TRY(const auto answer, requests.send_if_supported(request));
    if (!answer.is_success()) {
      return std::optional<std::vector<UnfinishedUpload>>();
    }
    auto page = upload_page_of(as_text(answer.outcome.body));
    if (!page) {
      return page.error().within(requests.name_of(start));
    }
    for (auto& upload : page->uploads) {
      if (upload.key.starts_with(prefix + start)) {
        upload.key.erase(0, prefix.size());
        found.push_back(std::move(upload));
      }
    }
    if (page->next && next && page->next->key == next->key && page->next->id == next->id) {
      return Error{Errc::kIo, fmt::format("{}: the object storage repeats a page of its list",
                                          requests.name_of(start))};
    }
    next = std::move(page->next);
  } while (next);
  return std::optional(std::move(found));
}

Result<void> abort_upload(S3Requests& requests, const UnfinishedUpload& upload) {
  VERGER_RETURN_IF_ERROR(requests.send_if_there(abort_request(upload.key, upload.id)));
  return {};
}

}  // namespace verger::object_store::detail
