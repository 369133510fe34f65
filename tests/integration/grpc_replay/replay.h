#pragma once

#include <event_store/streams.pb.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/grpc/service_table.h"
#include "tests/integration/grpc_replay/recorded_exchange.h"
#include "tests/integration/grpc_replay/recorded_messages.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {

/// What is done beside the exchanges of a recording, which other clients did or time did.
struct ReplayPlan {
  /// By number, with the reason.
  std::map<int, std::string> not_here{};
  /// No time passes behind these.
  std::set<int> at_once{};
  /// Those that happened while another one was open, which comes later in the file.
  std::set<int> inner{};
  std::map<int, std::function<void()>> before{};
  /// Sent in place of what was recorded: "user:password", and the last message, whole.
  std::map<int, std::string> credentials{};
  std::map<int, std::string> last_message{};
  /// While an exchange is open, after the step of its timeline with this index: other exchanges,
  /// for example, which are then not replayed again.
  struct Inside {
    std::size_t after_step;
    std::function<void(MemoryExchange&)> act;
  };
  std::multimap<int, Inside> inside{};
};

/// A single embedded node in virtual time, as the recordings' server was configured, or three.
class Replay {
 public:
  explicit Replay(std::size_t voters);

  /// Replays what the running test is to replay of the file (coverage.h); fails it where one of the
  /// exchanges is not the recorded one.
  void run(const std::string& file, ReplayPlan plan = {});
  /// For a recording of another shape, brought into that of the files. How many exchanges were the
  /// same.
  int run_recorded(nlohmann::json recorded, const std::string& name, ReplayPlan plan);
  /// Replays exchange `number` of the file that is being replayed: inside another one.
  void run_one(int number);

  void tombstone(const std::string& stream);
  void append(const std::string& stream, const std::vector<std::string>& types,
              const std::string& data = "{}");
  /// One event with an id of its own.
  void append_known(const std::string& stream, const std::string& id, const std::string& type,
                    const std::string& data);
  /// Sends the messages to a method of Streams and returns at once.
  std::shared_ptr<MemoryExchange> call(const std::string& method,
                                       const std::vector<std::string>& messages);
  /// The same, with any path and credentials ("" for none).
  std::shared_ptr<MemoryExchange> call_path(const std::string& path, const std::string& credentials,
                                            const std::vector<std::string>& messages);

  SimWorld& world() { return world_; }
  NodeCluster& cluster() { return cluster_; }
  /// Starts node `i` again.
  void boot(std::size_t i);
  node::Core& core(std::size_t i);
  /// Where a position of the recording is in this run.
  [[nodiscard]] std::uint64_t own_position(std::uint64_t recorded) const;
  /// Lets time pass until groups look at their timeouts in `ahead`.
  void run_until_tick_is(std::chrono::milliseconds ahead);
  /// The node that the next exchanges are sent to.
  std::size_t at = 0;

  std::shared_ptr<MemoryExchange> start(const nlohmann::json& exchange);

 private:
  static NodeClusterOptions options(std::size_t voters);

  void provide(const event_store::client::streams::ReadResp& response, bool metadata);
  void fill_up_to(const event_store::client::streams::ReadResp::ReadEvent::RecordedEvent& event);
  void carry_out(const std::string& method, const std::vector<std::string>& messages);
  std::string translated(const std::string& call, const std::string& bytes);
  void note_ids(const std::string& call, const std::string& bytes);
  void count(const nlohmann::json& exchange, bool inner);
  std::string differences(const nlohmann::json& exchange);
  std::string compare(const nlohmann::json& exchange, const MemoryExchange& got);

  SimWorld world_;
  NodeCluster cluster_;
  std::vector<std::shared_ptr<grpc::ServiceTable>> tables_;
  std::set<std::string> known_ids_;
  std::map<std::uint64_t, std::uint64_t> positions_;  ///< recorded to own

  // Of the file that is being replayed.
  nlohmann::json recorded_;
  std::string file_;
  ReplayPlan plan_;
  std::set<int> same_{};
};

}  // namespace verger::testing
