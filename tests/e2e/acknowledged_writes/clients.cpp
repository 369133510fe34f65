#include "tests/e2e/acknowledged_writes/clients.h"

#include <nlohmann/json.hpp>

namespace verger::test {
namespace {

constexpr int kReadPage = 20;

}  // namespace

void Writer::write(const std::stop_token& stop) {
  while (!stop.stop_requested() && contradiction_.empty()) {
    ids_.push_back(random_.uuid().to_string());
    while (!stop.stop_requested() && contradiction_.empty() && !sent()) {
      ++refused_;
      pause_briefly();
    }
  }
}

bool Writer::sent() {
  const auto number = static_cast<int>(ids_.size()) - 1;
  http::Request request{.method = "POST",
                        .target = "/streams/" + stream_,
                        .headers = {{"Content-Type", "application/json"},
                                    {"ES-EventType", "written"},
                                    {"ES-EventId", ids_.back()},
                                    {"ES-ExpectedVersion", std::to_string(number - 1)}},
                        .body = fmt::format(R"({{"n":{}}})", number)};
  const auto answer =
      caller_.ask(cluster_.node_url(random_.below(RealCluster::kNodes)), std::move(request));
  if (answer && answer->status == 400) {
    contradiction_ = fmt::format("{}, event {}: {}", stream_, number, answer->reason);
  }
  if (!answer || answer->status != 201) {
    return false;
  }
  ++acknowledged_;
  return true;
}

void Reader::read(const std::stop_token& stop) {
  while (!stop.stop_requested() && contradiction_.empty()) {
    const auto node = random_.below(RealCluster::kNodes);
    const auto& stream = streams_[random_.below(streams_.size())];
    const auto answer = caller_.ask(
        cluster_.node_url(node),
        {.method = "GET",
         .target = fmt::format("/streams/{}/head/backward/{}?embed=body", stream, kReadPage),
         .headers = {{"Accept", "application/json"}, {"ES-RequireLeader", "false"}}});
    if (answer && answer->status == 200) {
      for (const auto& entry : nlohmann::json::parse(answer->body).at("entries")) {
        saw(node, stream, entry.at("eventNumber").get<std::size_t>(),
            entry.at("eventId").get<std::string>());
      }
    }
    pause_briefly();
  }
}

void Reader::saw(std::size_t node, const std::string& stream, std::size_t number,
                 const std::string& id) {
  const auto& first = seen_[stream].try_emplace(number, id).first->second;
  if (first != id) {
    contradiction_ =
        fmt::format("{}, event {} was {}, and is {} on node {}", stream, number, first, id, node);
  }
}

}  // namespace verger::test
