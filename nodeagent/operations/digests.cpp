#include "nodeagent/operations/digests.h"

#include <fmt/format.h>

#include "engine/base/digest.h"

namespace verger::agent {

/// One digest, asked for, under way or finished. `basis` tells when it is out of date.
struct Digests::Work {
  std::int64_t point = 0;
  std::string basis;
  std::shared_ptr<node::DigestWork> job;
  std::shared_ptr<node::StopFlag> stop = std::make_shared<node::StopFlag>();
  bool finished = false;
  Result<void> outcome;
  api::Digest digest;
};

namespace {

/// Changes with every restart of the node and every rewritten chunk.
std::string basis_of(const node::NodeInspection& node) {
  const auto chunks = node.chunks();
  const auto point = node.last_finished_point();
  const auto running = node.running_scavenge();
  return fmt::format("{}/{}/{}/{}/{}", node.instance_id(), chunks.file_count, chunks.total_bytes,
                     point ? point->number : -1, running ? running->id : "");
}

}  // namespace

Result<std::optional<api::Digest>> Digests::ask(node::NodeInspection& node, std::int64_t point) {
  const auto basis = basis_of(node);
  if (work_ && !work_->finished) {
    if (work_->point == point) {
      return std::nullopt;
    }
    return Error{
        Errc::kRefused,
        fmt::format("the digest up to point {} is being computed; ask again when it is done",
                    work_->point)};
  }
  if (work_ && work_->point == point && work_->basis == basis) {
    if (!work_->outcome) {
      const auto error = work_->outcome.error();
      work_ = nullptr;  // asking again tries again
      return error;
    }
    return work_->digest;
  }
  const auto points = node.scavenge_points();
  if (!points) {
    return points.error();
  }
  auto work = std::make_shared<Work>();
  work->point = point;
  work->basis = basis;
  for (const auto& known : *points) {
    if (known.number.value() == point) {
      work->digest.point_number = point;
      work->digest.point_position = known.position.value();
    }
  }
  VERGER_TRY(work->job, node.make_digest_job(point));
  work_ = work;
  tasks_.spawn(compute(std::move(work), jobs_));
  return std::nullopt;
}

void Digests::stop() {
  if (work_) {
    work_->stop->request();
  }
}

net::awaitable<void> Digests::compute(std::shared_ptr<Work> work, node::JobRunner& jobs) {
  work->outcome = co_await jobs.run(work->job, work->stop);
  if (work->outcome) {
    const auto& digest = work->job->digest();
    work->digest.logical = to_hex(digest.logical);
    work->digest.readable = to_hex(digest.readable);
    for (const auto& chunk : digest.chunks) {
      work->digest.chunks.push_back(to_hex(chunk));
    }
    work->digest.records = static_cast<std::int64_t>(digest.records);
    work->digest.readable_events = static_cast<std::int64_t>(digest.readable_events);
  }
  work->job = nullptr;
  work->finished = true;
}

}  // namespace verger::agent
