#include "engine/object_store/detail/objects.h"

#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"

namespace verger::object_store::detail {
namespace {

/// What an object says of its content, so that a damaged answer is seen.
constexpr std::string_view kDigestHeader = "x-amz-meta-sha256";

std::string digest_header_of(ByteView content) {
  return fmt::format("{}: {}", kDigestHeader, to_hex(sha256(content)));
}

}  // namespace

Result<std::optional<ObjectFacts>> look_at_object(S3Requests& requests, const std::string& key) {
  VERGER_TRY(const auto answer, requests.send_if_there({.method = Method::kHead, .key = key}));
  if (answer.is_missing()) {
    return std::optional<ObjectFacts>();
  }
  const auto size = number_from_text<std::uint64_t>(answer.outcome.header("content-length"));
  if (!size) {
    return Error{Errc::kIo, fmt::format("{}: the object storage does not say its size",
                                        requests.name_of(key))};
  }
  ObjectFacts facts{.size = *size};
  if (answer.outcome.header("x-amz-server-side-encryption").empty()) {
    facts.etag = answer.outcome.header("etag");
    std::erase(facts.etag, '"');
  }
  return std::optional(std::move(facts));
}

Result<void> put_object(S3Requests& requests, const std::string& key, ByteView content) {
  // Done twice it is the same: a lost answer does no harm.
  VERGER_RETURN_IF_ERROR(requests.send({.method = Method::kPut,
                                        .key = key,
                                        .headers = {digest_header_of(content)},
                                        .body = content}));
  return {};
}

Result<Bytes> get_object(S3Requests& requests, const std::string& key) {
  const int attempts = requests.settings().retry.attempts;
  for (int attempt = 1;; ++attempt) {
    VERGER_TRY(auto answer, requests.send({.method = Method::kGet, .key = key}));
    const auto digest = answer.outcome.header(std::string(kDigestHeader));
    if (digest.empty() || digest == to_hex(sha256(answer.outcome.body))) {
      return std::move(answer.outcome.body);
    }
    if (attempt >= attempts) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: its content does not have the SHA-256 that it was stored with",
                               requests.name_of(key))};
    }
    requests.log().warning("an object came damaged and is read again",
                           {{"object", requests.name_of(key)}});
  }
}

Result<void> read_object(S3Requests& requests, const std::string& key, std::uint64_t offset,
                         MutableBytes into) {
  if (into.empty()) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(
      requests.send({.method = Method::kGet, .key = key, .into = into, .offset = offset}));
  return {};
}

Result<void> remove_object(S3Requests& requests, const std::string& key) {
  VERGER_RETURN_IF_ERROR(requests.send_if_there({.method = Method::kDelete, .key = key}));
  return {};
}

Result<std::vector<ListedObject>> list_objects(S3Requests& requests, const std::string& start,
                                               bool flat) {
  const auto& prefix = requests.settings().prefix;
  std::vector<ListedObject> found;
  std::string next;
  do {
    S3Request request;
    if (!next.empty()) {
      request.query.emplace_back("continuation-token", next);
    }
    if (flat) {
      request.query.emplace_back("delimiter", "/");
    }
    request.query.emplace_back("list-type", "2");
    request.query.emplace_back("prefix", prefix + start);
    VERGER_TRY(const auto answer, requests.send(request));
    auto page = list_page_of(as_text(answer.outcome.body));
    if (!page) {
      return page.error().within(requests.name_of(start));
    }
    for (auto& object : page->objects) {
      if (object.key.starts_with(prefix)) {
        object.key.erase(0, prefix.size());
        found.push_back(std::move(object));
      }
    }
    if (!page->next.empty() && (page->next == next || page->objects.empty())) {
      return Error{Errc::kIo, fmt::format("{}: the object storage repeats a page of its list",
                                          requests.name_of(start))};
    }
    next = std::move(page->next);
  } while (!next.empty());
  return found;
}

}  // namespace verger::object_store::detail
