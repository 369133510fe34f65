#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "nodeagent/api/json_writer.h"
#include "nodeagent/http/message.h"
#include "tests/simulation/control/model.h"

// The node interface of the model, as docs/formats/node-interface.md has it.
namespace verger::sim {

using std::chrono::milliseconds;

namespace {

constexpr std::int64_t kFirstPosition = 10'000;
constexpr std::int64_t kEntrySize = 500;
constexpr std::size_t kPage = 20;

http::Response json_answer(std::string body) {
  http::Response out;
  out.status = 200;
  out.headers.set("Content-Type", "application/json; charset=utf-8");
  out.body = std::move(body);
  return out;
}

http::Response text_answer(int status, std::string body) {
  http::Response out;
  out.status = status;
  out.headers.set("Content-Type", "text/plain; charset=utf-8");
  out.headers.set("Access-Control-Allow-Methods", "GET, OPTIONS");  // set by a route
  out.body = std::move(body);
  return out;
}

api::ScavengePoint to_api(const streams::ScavengePoint& point) {
  return {.number = point.number.value(),
          .position = point.position.value(),
          .effective_now = format_ticks(point.effective_now),
          .threshold = point.threshold};
}

/// What the event holds: JSON, which the feed has in a string.
std::string data_of(const api::ScavengeEvent& event) {
  api::JsonWriter out;
  out.begin_object()
      .member("scavengeId", event.scavenge_id)
      .member("nodeEndpoint", event.node_endpoint)
      .member("result", event.result)
      .member("timeTaken", event.time_taken)
      .member("spaceSaved", event.space_saved)
      .member("maxChunkScavenged", event.max_chunk_scavenged);
  if (!event.error.empty()) {
    out.member("error", event.error);
  }
  return out.end_object().take();
}

std::string_view phase_of(scavenge::Stage stage) {
  switch (stage) {
    case scavenge::Stage::kAccumulating:
      return "Accumulation Phase";
    case scavenge::Stage::kCalculating:
      return "Calculation Phase";
    case scavenge::Stage::kExecutingChunks:
      return "Chunk execution Phase";
    case scavenge::Stage::kMergingChunks:
      return "Chunk merging Phase";
    case scavenge::Stage::kExecutingIndex:
      return "Index execution Phase";
    case scavenge::Stage::kCleaning:
      return "Cleaning Phase";
    case scavenge::Stage::kDone:
      break;
  }
  return "Idle";
}

}  // namespace

ModelNode::ModelNode(ModelCluster& cluster, std::size_t index)
    : cluster_(cluster),
      index_(index),
      instance_(cluster.random_.uuid().to_string()),
      seen_(cluster.members_.size()) {}

ModelNode::~ModelNode() {
  auto& member = cluster_.members_[index_];
  if (member.process == this) {
    member.process = nullptr;
    if (cluster_.on_gone) {
      cluster_.on_gone(member.host, running_);
    }
  }
}

std::int64_t ModelNode::position() const {
  return kFirstPosition +
         kEntrySize * static_cast<std::int64_t>(cluster_.members_[index_].disk.length);
}

ModelNode::Seen ModelNode::as_seen() const {
  return {.instance = instance_,
          .state = state_,
          .alive = true,
          .position = position(),
          .epoch = epoch_,
          .priority = priority_};
}

void ModelNode::tell(api::ScavengeEvent event) {
  event.node_endpoint = fmt::format("{}:{}", cluster_.members_[index_].host, kModelNodePort);
  outbox_.push_back(std::move(event));
}

void ModelNode::close_dead_runs() {
  const auto self = fmt::format("{}:{}", cluster_.members_[index_].host, kModelNodePort);
  std::vector<std::string> open;
  for (std::size_t i = 0; i < cluster_.visible(cluster_.members_[index_]); ++i) {
    const auto& event = cluster_.log_[i].event;
    if (!event || event->node_endpoint != self) {
      continue;
    }
    if (event->type == "$scavengeStarted") {
      open.push_back(event->scavenge_id);
    } else if (event->type == "$scavengeCompleted") {
      std::erase(open, event->scavenge_id);
    }
  }
  for (const auto& id : open) {
    if (!running_ || id != running_->id) {
      tell({.type = "$scavengeCompleted",
            .scavenge_id = id,
            .result = "Interrupted",
            .error = "The node was restarted.",
            .time_taken = "00:00:00"});
    }
  }
}

void ModelNode::end_run(std::string_view result, std::string error) {
  const bool has_error = !error.empty();
  tell({.type = "$scavengeCompleted",
        .scavenge_id = running_->id,
        .result = std::string(result),
        .error = std::move(error),
        .time_taken = "00:00:02",
        .space_saved = 100,
        .max_chunk_scavenged = 3});
  const auto ended = *std::exchange(running_, std::nullopt);
  if (cluster_.on_end) {
    cluster_.on_end(cluster_.members_[index_].host, ended,
                    {.result = std::string(result), .failed = has_error});
  }
}

// --- what a look at its files shows

node::NodePositions ModelNode::positions() const {
  return {.writer = LogPosition(position()),
          .chaser = LogPosition(position()),
          .committed = LogPosition(position()),
          .epoch_number = EpochNumber(epoch_),
          .epoch_position = LogPosition(kFirstPosition)};
}

std::string ModelNode::database_id() const {
  const auto& member = cluster_.members_[index_];
  return member.stranger ? member.other_database : cluster_.database_;
}

node::ChunkInventory ModelNode::chunks() const {
  return {.file_count = 4,
          .total_bytes = cluster_.members_[index_].disk.bytes,
          .largest_bytes = 262'144,
          .chunk_size = 262'144};
}

const Path& ModelNode::database_directory() const {
  static const Path kDirectory = "/";
  return kDirectory;
}
const Path& ModelNode::index_directory() const { return database_directory(); }

Result<std::vector<streams::ScavengePoint>> ModelNode::scavenge_points() const {
  std::vector<streams::ScavengePoint> points;
  const auto end = cluster_.visible(cluster_.members_[index_]);
  for (std::size_t i = 0; i < end; ++i) {
    if (cluster_.log_[i].point) {
      points.push_back(*cluster_.log_[i].point);
    }
  }
  return points;
}

std::optional<api::UnfinishedScavenge> ModelNode::unfinished_scavenge() const {
  const auto& checkpoint = cluster_.members_[index_].disk.checkpoint;
  if (!checkpoint || checkpoint->stage == scavenge::Stage::kDone) {
    return std::nullopt;
  }
  return api::UnfinishedScavenge{to_api(checkpoint->point),
                                 std::string(scavenge::to_string(checkpoint->stage))};
}

std::optional<api::ScavengePoint> ModelNode::last_finished_point() const {
  const auto& checkpoint = cluster_.members_[index_].disk.checkpoint;
  if (!checkpoint || checkpoint->stage != scavenge::Stage::kDone) {
    return std::nullopt;
  }
  return to_api(checkpoint->point);
}

std::optional<api::RunningScavenge> ModelNode::running_scavenge() const {
  if (!running_) {
    return std::nullopt;
  }
  const auto& checkpoint = cluster_.members_[index_].disk.checkpoint;
  const auto stage =
      running_->has_point && checkpoint ? checkpoint->stage : scavenge::Stage::kAccumulating;
  return api::RunningScavenge{.id = running_->id,
                              .phase = std::string(phase_of(stage)),
                              .chunks_done = static_cast<std::int64_t>(stage),
                              .chunks_total = 7,
                              .bytes_saved = 0};
}

namespace {

/// Takes some steps, as the real one does, and finds what the log has up to the point: the same on
/// all nodes, before a scavenge and after it.
class ModelDigest final : public node::DigestWork {
 public:
  /// Counts its steps in `counted`, for the judge.
  ModelDigest(const streams::ScavengePoint& point, const streams::DigestOptions& options,
              std::shared_ptr<int> counted)
      : end_(point.position), counted_(std::move(counted)) {
    digest_.logical = sha256(as_bytes(fmt::format("up to {}", point.position.value())));
    digest_.chunks = {digest_.logical};
    digest_.records = 1;
    if (options.readable) {
      digest_.readable = digest_.logical;
      digest_.readable_events = 1;
    }
  }
  Result<StepOutcome> step(Budget /*budget*/) override {
    ++*counted_;
    return ++steps_ < kSteps ? StepOutcome{StepOutcome::Kind::kRest, kStepTakes}
                             : StepOutcome{StepOutcome::Kind::kDone};
  }
  [[nodiscard]] const streams::DatabaseDigest& digest() const override { return digest_; }
  [[nodiscard]] LogPosition position() const override {
    return LogPosition(end_.value() * steps_ / kSteps);
  }
  [[nodiscard]] LogPosition end() const override { return end_; }

 private:
  static constexpr int kSteps = 8;
  static constexpr std::chrono::milliseconds kStepTakes{700};
  LogPosition end_;
  std::shared_ptr<int> counted_;
  int steps_ = 0;
  streams::DatabaseDigest digest_;
};

}  // namespace

Result<std::shared_ptr<node::DigestWork>> ModelNode::make_digest_job(
    std::int64_t point_number, const streams::DigestOptions& options) const {
  VERGER_TRY(const auto points, scavenge_points());
  const auto point = std::ranges::find_if(
      points, [&](const auto& each) { return each.number.value() == point_number; });
  if (point == points.end()) {
    return Error{Errc::kNotFound, fmt::format("scavenge point {} is not in the log", point_number)};
  }
  return std::make_shared<ModelDigest>(*point, options, cluster_.members_[index_].digest_steps);
}

// --- requests

http::Handler ModelNode::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

net::awaitable<http::Response> ModelNode::answer(http::Request request) {
  const auto target = http::parse_target(request.target);
  if (!target) {
    co_return text_answer(400, target.error().message);
  }
  const auto& path = target->segments;
  const bool get = request.method == "GET";
  if (target->path == "/gossip") {
    co_return gossip();
  }
  if (target->path == "/info") {
    co_return json_answer(api::to_json(api::NodeInfo{.version = cluster_.options_.version,
                                                     .state = std::string(api::to_string(state_)),
                                                     .user_management = true,
                                                     .authentication_type = "internal"})
                              .dump());
  }
  if (target->path == "/admin/scavenge" && request.method == "POST") {
    co_return start(*target);
  }
  if (target->path == "/admin/scavenge/current" && get) {
    const auto id = running_ ? running_->id : std::string();
    co_return json_answer(fmt::format(R"({{"scavengeId":"{}","scavengeLink":"{}{}"}})", id,
                                      id.empty() ? "" : "/admin/scavenge/", id));
  }
  if (path.size() == 3 && path[1] == "scavenge" && request.method == "DELETE") {
    co_return co_await stop(path[2]);
  }
  if (target->path == "/admin/node/resign" && request.method == "POST") {
    if (cluster_.on_resign) {
      cluster_.on_resign(cluster_.members_[index_].host);
    }
    if (state_ == api::NodeState::kLeader) {
      state_ = api::NodeState::kResigningLeader;
      gossip_.clear();
    }
    co_return text_answer(200, "");
  }
  if (path.size() == 4 && path[2] == "priority" && request.method == "POST") {
    const auto& text = path[3];
    std::from_chars(text.data(), text.data() + text.size(), priority_);
    gossip_.clear();
    co_return text_answer(200, "");
  }
  if (path.size() >= 2 && path[0] == "streams" && path[1] == "$scavenges" && get) {
    std::size_t count = kPage;
    if (path.size() == 5) {
      std::from_chars(path[4].data(), path[4].data() + path[4].size(), count);
    }
    co_return history(path.size() > 2 ? std::string_view(path[2]) : std::string_view(), count);
  }
  if (target->path == "/streams/$scavengePoints/head/backward/1" && get &&
      cluster_.options_.shows_points) {
    co_return newest_point();
  }
  http::Response unknown;
  unknown.status = 404;
  co_return unknown;
}

http::Response ModelNode::start(const http::Target& target) {
  const auto sync_only = target.parameter("syncOnly");
  if (running_) {
    if (cluster_.on_refused_start) {
      cluster_.on_refused_start(cluster_.members_[index_].host, *running_);
    }
    return text_answer(400, "Scavenge is already running");
  }
  auto& member = cluster_.members_[index_];
  running_ = ModelScavenge{.id = cluster_.random_.uuid().to_string(),
                           .sync_only = sync_only && *sync_only == "true"};
  tell({.type = "$scavengeStarted", .scavenge_id = running_->id});
  if (cluster_.on_start) {
    cluster_.on_start(member.host, /*foreign=*/false);
  }
  return json_answer(fmt::format(R"({{"scavengeId":"{}"}})", running_->id));
}

net::awaitable<http::Response> ModelNode::stop(std::string id) {
  if (!running_ || (id != "current" && id != running_->id)) {
    co_return text_answer(404, "Scavenge Id does not exist");
  }
  const auto stopped = running_->id;
  running_->stopping = true;
  auto& timers = cluster_.world_.host(cluster_.members_[index_].host).timers();
  while (running_ && running_->id == stopped) {
    co_await timers.sleep_for(cluster_.options_.tick);
  }
  co_return json_answer("\"" + stopped + "\"");
}

/// Written straight into text: it is requested more often than anything else. Members that no
/// client of ours reads are left out.
http::Response ModelNode::gossip() {
  if (gossip_.empty()) {
    const auto& members = cluster_.members_;
    seen_[index_] = as_seen();
    const auto now = format_ticks(cluster_.world_.wall());
    auto out = std::back_inserter(gossip_);
    gossip_ = R"({"members":[)";
    bool first = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& seen = seen_[i];
      if (seen.instance.empty()) {
        continue;  // never heard of
      }
      fmt::format_to(
          out,
          R"({}{{"instanceId":"{}","timeStamp":"{}","state":"{}","isAlive":{},"httpEndPointIp":"{}",)"
          R"("httpEndPointPort":{},"lastCommitPosition":{},"writerCheckpoint":{},)"
          R"("chaserCheckpoint":{},"epochPosition":{},"epochNumber":{},"epochId":"{}",)"
          R"("nodePriority":{},"isReadOnlyReplica":{},"esVersion":"{}"}})",
          first ? "" : ",", seen.instance, now, api::to_string(seen.state), seen.alive,
          members[i].host, kModelNodePort, seen.position, seen.position, seen.position,
          kFirstPosition, seen.epoch, cluster_.epoch_id_, seen.priority, !members[i].votes,
          cluster_.options_.version);
      first = false;
    }
    fmt::format_to(out, R"(],"serverIp":"{}","serverPort":{}}})", members[index_].host,
                   kModelNodePort);
  }
  return json_answer(gossip_);
}

http::Response ModelNode::history(std::string_view id, std::size_t count) const {
  api::JsonWriter out;
  out.begin_object().name("entries").begin_list();
  const auto end = cluster_.visible(cluster_.members_[index_]);
  std::size_t reported = 0;
  for (auto i = end; i > 0 && reported < count; --i) {
    const auto& event = cluster_.log_[i - 1].event;
    if (!event || (!id.empty() && event->scavenge_id != id)) {
      continue;
    }
    ++reported;
    out.begin_object()
        .member("eventType", event->type)
        .member("eventNumber", i - 1)
        .member("positionEventNumber", i - 1)
        .member("data", data_of(*event))
        .end_object();
  }
  if (reported == 0) {
    return text_answer(404, "");
  }
  return json_answer(out.end_list().end_object().take());
}

http::Response ModelNode::newest_point() const {
  const auto& member = cluster_.members_[index_];
  const auto number = cluster_.newest_point(member.host);
  if (number < 0) {
    return text_answer(404, "");
  }
  api::JsonWriter out;
  out.begin_object().name("entries").begin_list();
  out.begin_object()
      .member("eventType", "$scavengePoint")
      .member("eventNumber", number)
      .member("data", "{}")
      .end_object();
  return json_answer(out.end_list().end_object().take());
}

}  // namespace verger::sim
