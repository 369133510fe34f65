#include "tests/support/processes/steady_writer.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

SteadyWriter::SteadyWriter(const RealCluster& cluster, const std::filesystem::path& roots,
                           seconds patience)
    : cluster_(cluster), caller_(roots), patience_(patience), thread_([this] { write(); }) {}

void SteadyWriter::stop() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool SteadyWriter::wait_for(int more) const {
  const auto target = written_ + more;
  return eventually(patience_ + seconds(10), [&] { return written_ >= target || failed_ > 0; }) &&
         failed_ == 0;
}

std::string SteadyWriter::id_of(int number) {
  return fmt::format("7a3c2f6e-3f37-4b0f-8a52-{:012x}", number);
}

void SteadyWriter::write() {
  for (int number = 0; !stop_; ++number) {
    const auto id = id_of(number);
    const auto begun = std::chrono::steady_clock::now();
    const bool done = eventually(patience_, [&] {
      const auto node = next_node_++ % RealCluster::kNodes;
      const auto answer =
          caller_.ask(cluster_.node_url(node), {.method = "POST",
                                                .target = "/streams/written-steadily",
                                                .headers = {{"Content-Type", "application/json"},
                                                            {"ES-EventType", "written"},
                                                            {"ES-EventId", id}},
                                                .body = fmt::format("{{\"n\":{}}}", number)});
      const bool accepted = answer.has_value() && answer->status == 201;
      in_vain_ += accepted ? 0 : 1;
      return accepted;
    });
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
    slowest_ = std::max<std::int64_t>(slowest_, took.count());
    ++(done ? written_ : failed_);
  }
}

int written_steadily_at(HttpsCaller& caller, const std::string& url) {
  constexpr int kPage = 200;
  for (int next = 0;;) {
    const auto answer = caller.ask(
        url,
        {.method = "GET",
         .target = fmt::format("/streams/written-steadily/{}/forward/{}?embed=body", next, kPage),
         .headers = {{"Accept", "application/json"}, {"ES-RequireLeader", "false"}}});
    if (!answer || answer->status != 200) {
      return answer && answer->status == 404 ? 0 : -1;
    }
    const auto entries = nlohmann::json::parse(answer->body).at("entries");
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry, ++next) {  // newest first
      if (entry->at("eventNumber") != next || entry->at("eventId") != SteadyWriter::id_of(next)) {
        return -1;
      }
    }
    if (entries.size() < kPage) {
      return next;
    }
  }
}

bool all_alive_everywhere(const RealCluster& cluster, HttpsCaller& caller) {
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    const auto answer = caller.get(cluster.node_url(i), "/gossip");
    if (!answer || answer->status != 200) {
      return false;
    }
    const auto gossip = nlohmann::json::parse(answer->body);
    std::size_t alive = 0;
    for (const auto& member : gossip.at("members")) {
      alive += member.at("isAlive") == true ? 1 : 0;
    }
    if (alive != RealCluster::kNodes) {
      return false;
    }
  }
  return true;
}

}  // namespace verger::test
