#include "nodeagent/operations/heal/heal_filter_operation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include "engine/index/existence_filter.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/backup/scavenge_absence.h"
#include "nodeagent/operations/heal/drop_filter_job.h"
#include "nodeagent/operations/heal/lost_streams_look.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/jobs/stopped_server_operation.h"

namespace verger::agent {
namespace {

using nlohmann::json;

// Of the operation's memory.
constexpr const char* kLost = "lost";
constexpr const char* kHashes = "hashes";
constexpr const char* kSample = "sample";
constexpr const char* kNotFound = "not_found";
constexpr const char* kRead = "read";
constexpr const char* kDropped = "dropped";
constexpr const char* kLooks = "looks";

/// A server writes the checkpoint of its filter every 30 s.
constexpr std::int64_t kLooksForFilter = 600;

/// Of the sample, over HTTP where the server has Atom; nullopt: it has not.
net::awaitable<std::optional<std::vector<bool>>> found_over_http(
    LocalNode node, std::vector<client::EventToFind> sample) {
  std::vector<bool> out;
  for (const auto& event : sample) {
    const auto page = client::to_result(co_await node.client.read_backward(event.stream, {}, 1));
    if (!page && page.error().code != Errc::kNotFound) {
      co_return std::nullopt;
    }
    out.push_back(page.has_value());
  }
  co_return out;
}

/// The same by gRPC over the server's Unix socket; nullopt: it is not there, or does not answer.
net::awaitable<std::optional<std::vector<bool>>> found_over_socket(
    LocalNode node, std::vector<client::EventToFind> sample) {
  if (node.online == nullptr || !node.online->look().problem.empty()) {
    co_return std::nullopt;
  }
  const auto reader = node.online->connect(co_await net::this_coro::executor);
  if (!reader) {
    co_return std::nullopt;
  }
  const auto sizes = client::to_result(co_await (*reader)->data_sizes(std::move(sample)));
  if (!sizes) {
    co_return std::nullopt;
  }
  std::vector<bool> out;
  for (const auto& size : *sizes) {
    out.push_back(size.has_value());
  }
  co_return out;
}

/// What a reader of the sample gets; into `memory`.
net::awaitable<void> read_sample(LocalNode node, json& memory) {
  std::vector<client::EventToFind> sample;
  for (const auto& each : memory.value(kSample, json::array())) {
    sample.push_back({.stream = each.value("stream", std::string()),
                      .number = EventNumber(each.value("number", std::int64_t{0}))});
  }
  auto found = co_await found_over_http(node, sample);
  if (!found) {
    found = co_await found_over_socket(node, sample);
  }
  std::vector<std::string> missing;
  for (std::size_t n = 0; found && n < sample.size(); ++n) {
    if (!(*found)[n]) {
      missing.push_back(sample[n].stream);
    }
  }
  memory[kRead] = found ? found->size() : 0;
  if (!missing.empty()) {
    const auto still = std::make_shared<StreamsWithEvents>(*node.offline, missing);
    if (co_await node.offline->run(still, std::make_shared<node::StopFlag>())) {
      missing = still->left();
    }
  }
  memory[kNotFound] = missing;
}

/// How many of these the filter lacks; nullopt: the server has not finished it.
Result<std::optional<std::int64_t>> still_lost(const external::OfflineServer& server,
                                               const std::vector<std::uint64_t>& hashes) {
  const auto machine = server.machine();
  index::ExistenceFilter existence(machine.files, server.place().index_directory(), 0);
  VERGER_RETURN_IF_ERROR(existence.load());
  if (existence.checkpoint() == kNoPosition) {
    return std::nullopt;
  }
  VERGER_TRY(const auto filter, existence.open_filter());
  if (filter == nullptr) {
    return std::nullopt;
  }
  return std::ranges::count_if(
      hashes, [&filter](std::uint64_t hash) { return !filter->may_contain(StreamHash(hash)); });
}

class HealFilterOperation final : public StoppedServerOperation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "heal_filter"; }

 protected:
  [[nodiscard]] std::vector<std::string_view> own_parameters() const override { return {}; }

  net::awaitable<Result<void>> check(LocalNode node, const api::GossipMember& /*self*/,
                                     const OperationRecord& /*record*/, json& memory) override {
    VERGER_CO_RETURN_IF_ERROR(co_await see_that_no_scavenge_runs(
        node, "a restart would interrupt it. Wait for its end, or stop it"));
    // What is lost is counted while the server still runs.
    const auto control = node.control;
    const auto look = std::make_shared<LostStreamsLook>(*node.offline);
    const auto paced =
        std::make_shared<PacedJob>(look, control, node.clock, PacedJob::Lease::kNone);
    const auto counted = co_await node.offline->run(paced, control->stop_flag());
    if (!counted && counted.error().code == Errc::kCancelled) {
      co_return Error{Errc::kCancelled, "stopped before the server was; nothing was done"};
    }
    VERGER_CO_RETURN_IF_ERROR(counted);
    memory[kLost] = look->count();
    memory[kHashes] = look->hashes();
    auto sample = json::array();
    for (const auto& [stream, number] : look->sample()) {
      sample.push_back({{"stream", stream}, {"number", number}});
    }
    memory[kSample] = std::move(sample);
    co_return Result<void>();
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                               const OperationRecord& /*record*/) override {
    return std::shared_ptr<MeteredJob>(std::make_shared<DropFilterJob>(*node.offline));
  }

  void keep_result(const MeteredJob& /*job*/, json& memory) override { memory[kDropped] = true; }

  /// The filter that the server has made, and what a reader of the sample gets.
  net::awaitable<Result<void>> look_after(LocalNode node, const OperationRecord& /*record*/,
                                          json& memory) override {
    if (!memory.contains(kDropped) || memory.contains(kNotFound)) {
      co_return Result<void>();
    }
    const auto hashes = memory.value(kHashes, std::vector<std::uint64_t>());
    VERGER_CO_TRY(const auto lost, still_lost(*node.offline, hashes));
    memory[kLooks] = memory.value(kLooks, std::int64_t{0}) + 1;
    if (!lost && memory[kLooks].get<std::int64_t>() < kLooksForFilter) {
      co_return Error{Errc::kUnavailable, "the server has not finished its existence filter"};
    }
    memory["lost_after"] = lost ? *lost : std::int64_t{-1};
    co_await read_sample(node, memory);
    co_return Result<void>();
  }

  std::optional<Observation> verify(const node::NodeInspection& /*inspection*/,
                                    const OperationRecord& /*record*/,
                                    const json& memory) override {
    if (!memory.contains(kNotFound)) {
      return std::nullopt;
    }
    return Observation{.kind = Observation::Kind::kDone,
                       .code = {},
                       .text = json{{"lostBefore", memory.value(kLost, std::int64_t{-1})},
                                    {"lostAfter", memory.value("lost_after", std::int64_t{-1})},
                                    {"streamsRead", memory.value(kRead, std::int64_t{0})},
                                    {"notFound", memory.at(kNotFound)}}
                                   .dump(-1, ' ', false, json::error_handler_t::replace)};
  }

  [[nodiscard]] std::string_view left_in_the_middle() const override {
    return "the agent ended in the middle; the next attempt does it again";
  }
};

}  // namespace

std::unique_ptr<Operation> make_heal_filter_operation() {
  return std::make_unique<HealFilterOperation>();
}

}  // namespace verger::agent
