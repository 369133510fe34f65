#include "controller/journal/detail/etcd_store.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

namespace verger::controller::detail {

using nlohmann::json;

namespace {

constexpr std::size_t kGetsAtOnce = 100;
constexpr std::size_t kEventsInPage = 256;
constexpr std::size_t kKeysInPage = 1'000;

/// The first key that is greater.
std::string after_key(const std::string& key) { return key + std::string(1, '\0'); }

}  // namespace

Result<void> EtcdStore::open() {
  VERGER_TRY(http_, make_etcd_http_client(context_.get_executor(), options_));
  client_.emplace(options_.endpoints, *http_, options_.call_deadline);
  return {};
}

/// The controller's thread waits here.
template <class T>
Result<T> EtcdStore::run(net::awaitable<Result<T>> work) {
  std::optional<Result<T>> out;
  int under_way = 1;
  const auto ended = [&] {
    if (--under_way == 0) {
      context_.stop();
    }
  };
  net::co_spawn(context_, std::move(work), [&](const std::exception_ptr& error, Result<T> result) {
    if (error) {
      out.emplace(Error{Errc::kUnknownOutcome, "etcd: the call broke off"});
    } else {
      out.emplace(std::move(result));
    }
    ended();
  });
  if (lease_ && lease_->wants_renewal()) {
    ++under_way;
    net::co_spawn(context_, EtcdLease::renew(lease_, *client_),
                  [&](const std::exception_ptr&, const Result<void>&) { ended(); });
  }
  context_.restart();
  context_.run();
  return out ? *std::move(out) : Result<T>(Error{Errc::kUnknownOutcome, "etcd: no answer"});
}

Result<EtcdAnswer> EtcdStore::transact(json compare, json success, json failure) {
  return run(client_->transact(std::move(compare), std::move(success), std::move(failure)));
}

Result<std::vector<std::vector<EtcdKeyValue>>> EtcdStore::get(json gets) {
  const auto count = gets.size();
  VERGER_TRY(auto answer, run(client_->read(std::move(gets))));
  answer.read.resize(count);
  return std::move(answer.read);
}

Result<EtcdSize> EtcdStore::size() { return run(client_->size()); }

Result<void> EtcdStore::compact(std::int64_t revision) { return run(client_->compact(revision)); }

json EtcdStore::head_gets() const {
  return json::array({etcd::get(keys_.at("epoch")), etcd::get(keys_.at("head"))});
}

Result<EtcdHead> EtcdStore::load_head() {
  VERGER_TRY(const auto found, get(head_gets()));
  return parse_head(found);
}

Result<EtcdStore::StreamPage> EtcdStore::read_stream(std::string_view stream, Revision after,
                                                     std::size_t limit) {
  StreamPage out;
  auto from = keys_.event(stream, after.value() + 1);
  const auto end = etcd::end_of_prefix(keys_.events_of(stream));
  while (!out.to_its_end && out.events.size() < limit) {
    const auto wanted = std::min(kEventsInPage, limit - out.events.size());
    VERGER_TRY(const auto page, get(json::array({etcd::get_range(from, end, wanted)})));
    for (const auto& kv : page.front()) {
      VERGER_TRY(auto event, parse_event(kv));
      out.events.push_back(std::move(event));
      from = after_key(kv.key);
    }
    out.to_its_end = page.front().size() < wanted;
  }
  return out;
}

Result<std::vector<JournalEvent>> EtcdStore::read_all(Sequence after, std::size_t limit) {
  std::vector<JournalEvent> out;
  const auto end = etcd::end_of_prefix(keys_.at("sequence/"));
  auto from = keys_.sequence(after.value() + 1);
  while (out.size() < limit) {
    const auto wanted = std::min(kEventsInPage, limit - out.size());
    VERGER_TRY(const auto page, get(json::array({etcd::get_range(from, end, wanted)})));
    VERGER_RETURN_IF_ERROR(add_events(page.front(), out));
    if (page.front().size() < wanted) {
      break;
    }
    from = after_key(page.front().back().key);
  }
  return out;
}

/// Reads the events that entries of sequence/ name, those beside each other in a stream at once.
Result<void> EtcdStore::add_events(const std::vector<EtcdKeyValue>& entries,
                                   std::vector<JournalEvent>& out) {
  struct Span {
    std::string stream;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  std::vector<Span> spans;
  for (const auto& kv : entries) {
    VERGER_TRY(auto place, parse_place(kv));
    const auto revision = place.revision.value();
    if (!spans.empty() && spans.back().stream == place.stream &&
        spans.back().last + 1 == revision) {
      spans.back().last = revision;
    } else {
      spans.push_back({std::move(place.stream), revision, revision});
    }
  }
  for (std::size_t begin = 0; begin < spans.size(); begin += kGetsAtOnce) {
    auto gets = json::array();
    const auto end = std::min(spans.size(), begin + kGetsAtOnce);
    for (auto i = begin; i < end; ++i) {
      const auto& span = spans[i];
      gets.push_back(etcd::get_range(keys_.event(span.stream, span.first),
                                     keys_.event(span.stream, span.last + 1), 0));
    }
    VERGER_TRY(const auto found, get(std::move(gets)));
    for (const auto& part : found) {
      for (const auto& kv : part) {
        VERGER_TRY(auto event, parse_event(kv));
        out.push_back(std::move(event));
      }
    }
  }
  return {};
}

Result<std::map<std::string, EtcdKeyValue>> EtcdStore::all_below(std::string_view folder,
                                                                 std::string_view prefix) {
  std::map<std::string, EtcdKeyValue> out;
  const auto base = keys_.at(folder);
  auto from = fmt::format("{}{}", base, prefix);
  const auto end = etcd::end_of_prefix(from);
  for (;;) {
    VERGER_TRY(const auto page, get(json::array({etcd::get_range(from, end, kKeysInPage)})));
    for (const auto& kv : page.front()) {
      out.emplace(kv.key.substr(base.size()), kv);
    }
    if (page.front().size() < kKeysInPage) {
      return out;
    }
    from = after_key(page.front().back().key);
  }
}

}  // namespace verger::controller::detail
