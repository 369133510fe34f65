#include "nodeagent/operations/online_scavenge/online_scavenge_work.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/online/comparison.h"
#include "engine/online/installation.h"
#include "engine/online/native_run.h"
#include "engine/streams/find_scavenge_point.h"
#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/online_scavenge/chunk_lock.h"
#include "nodeagent/operations/online_scavenge/chunk_switches.h"
#include "nodeagent/operations/online_scavenge/online_work.h"
#include "nodeagent/operations/online_scavenge/server_phase.h"

namespace verger::agent::beside {
namespace {

using memory::kBytesBefore;
using memory::kInstalled;
using memory::kLeft;
using memory::kRemoved;
using memory::kSaved;
using memory::kScavengeId;
using memory::kSwitched;
using memory::kTarget;
using nlohmann::json;

/// An unfinished scavenge of the server is finished first.
constexpr int kMostRounds = 3;

/// Makes the shadow and scavenges it. False: there is nothing to switch or to install.
net::awaitable<Result<bool>> prepare(Shared work, streams::ScavengePoint point) {
  auto shadow = std::make_shared<online_scavenge::ShadowJob>(work->machine, work->place);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "shadow", std::move(shadow)));
  VERGER_FAILPOINT("online.shadow.made");
  const auto threads = work->parameters.threads;
  online_scavenge::NativeRunOptions options{.threads = threads, .hash_in_background = true};
  if (work->page_size > 0) {
    options.state.page_size = work->page_size;
  }
  auto native = std::make_shared<online_scavenge::NativeRunJob>(
      work->machine, work->place, point, options,
      threads > 1 ? work->node.jobs->make_parallel(threads) : nullptr);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "scavenge", native));
  work->preparation = native->preparation();
  const auto stage = native->stage();
  native.reset();
  VERGER_FAILPOINT("online.native.done");
  if (stage != scavenge::Stage::kMergingChunks) {
    co_return false;  // reached, or left behind this stage by the server
  }
  auto comparison = std::make_shared<online_scavenge::ComparisonJob>(work->machine, work->place,
                                                                     work->preparation);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "compare", comparison));
  work->preparation = comparison->preparation();
  VERGER_FAILPOINT("online.compare.done");
  co_return true;
}

net::awaitable<Ended> install(Shared work) {
  work->report("state");
  if (!co_await lock_is_held(work)) {
    if (auto failed = co_await take_lock_again(work)) {
      co_return failed;
    }
  }
  const auto written = co_await call(work, [work]() -> Result<void> {
    VERGER_RETURN_IF_ERROR(online_scavenge::finish_state(work->machine.files, work->place.database,
                                                         work->preparation, work->left,
                                                         &index::hash_stream));
    return online_scavenge::install_state(work->machine, work->place, work->preparation);
  });
  if (!written && written.error().code != Errc::kNotFound) {
    co_return failure_of(written.error());
  }
  co_return std::nullopt;
}

/// Up to where only the server works: locked, scavenged, switched, and the state in its place.
net::awaitable<Ended> work_beside(Shared work, streams::ScavengePoint point) {
  work->left.clear();
  work->refusals = 0;
  if (auto failed = co_await take_lock(work)) {
    co_return failed;
  }
  auto left_over = co_await look_for_left_over(work);
  if (!left_over) {
    co_return failure_of(left_over.error());
  }
  if (*left_over) {
    work->installed = (*left_over)->installed;
    work->preparation = (*left_over)->preparation;
    work->node.log.info("continuing an online scavenge that was interrupted",
                        {{"chunks", fmt::to_string(work->preparation.chunks.size())}});
  } else {
    const auto prepared = co_await prepare(work, point);
    if (!prepared) {
      if (!work->stopping() || work->cancelled()) {
        static_cast<void>(co_await remove_shadow(work));
      }
      co_return failure_of(prepared.error());
    }
    work->installed = !*prepared;  // the server has what it needs
  }
  const auto sum = std::make_shared<Switched>();
  if (auto failed = co_await switch_chunks(work, sum)) {
    co_return failed;
  }
  if (!work->installed && sum->chunks == 0 && !work->left.empty() &&
      (work->stopping() || work->refusals > 0)) {
    static_cast<void>(co_await remove_shadow(work));
    co_return work->stopping() ? stopped()
                               : OnlineFailure{.code = "refused", .text = work->refusal};
  }
  if (!work->installed) {
    if (auto failed = co_await install(work)) {
      co_return failed;
    }
  }
  work->memory[kSaved] = work->memory.value(kSaved, 0LL) + sum->saved;
  work->memory[kRemoved] = work->memory.value(kRemoved, 0LL) + sum->removed;
  work->memory[kSwitched] = work->memory.value(kSwitched, 0LL) + sum->chunks;
  work->memory[kLeft] = work->memory.value(kLeft, 0LL) +
                        static_cast<std::int64_t>(work->installed ? 0 : work->left.size());
  work->memory[kInstalled] = true;
  work->memory[kTarget] = work->preparation.point.number.value();
  work->remember();
  VERGER_FAILPOINT("online.state.remembered");
  co_await release(work);
  co_return work->cancelled() ? Ended(stopped()) : std::nullopt;
}

std::string result_text(const Shared& work, const node::NodeInspection& inspection) {
  json point;
  if (const auto finished = inspection.last_finished_point()) {
    point = {{"number", finished->number},
             {"position", finished->position},
             {"effectiveNow", finished->effective_now},
             {"threshold", finished->threshold}};
  }
  const auto& memory = work->memory;
  return json{{"point", std::move(point)},
              {"scavengeId", memory.value(kScavengeId, std::string())},
              {"spaceSaved", memory.value(kSaved, 0LL)},
              {"recordsRemoved", memory.value(kRemoved, 0LL)},
              {"bytesBefore", memory.value(kBytesBefore, -1LL)},
              {"bytesAfter", inspection.chunks().total_bytes},
              {"chunksSwitched", memory.value(kSwitched, 0LL)},
              {"chunksLeft", memory.value(kLeft, 0LL)}}
      .dump();
}

/// What is left to the server all the time: a chunk for each thread, which is written at once, and
/// one more, which the server may begin.
std::uint64_t room_for_server(const Shared& work, const node::NodeInspection& inspection) {
  const auto largest = std::max<std::int64_t>(inspection.chunks().largest_bytes, 0);
  return static_cast<std::uint64_t>(largest) *
         static_cast<std::uint64_t>(work->parameters.threads + 1);
}

/// Room to begin with: also for the copy of the state. How much the new chunks need is known once
/// they are there: it is looked at while the shadow is worked in, and then nothing of the node's
/// has changed.
std::string space_problem(const Shared& work) {
  const auto space = work->machine.files.space(work->place.database);
  if (!space) {
    return {};
  }
  const auto state =
      work->machine.files.file_size(scavenge::ScavengeState::path_in(work->place.index));
  const auto needed = work->kept_free + state.value_or(0);
  return space->available >= needed
             ? std::string()
             : fmt::format("{}: {} bytes are free, and at least {} are needed",
                           work->place.database.string(), space->available, needed);
}

/// One point: the one that is wanted, or an older one that the server has left unfinished.
net::awaitable<Ended> one_round(Shared work) {
  if (!work->memory.value(kInstalled, false)) {
    const auto looked = co_await fresh_look(work->node);
    if (!looked) {
      co_return failure_of(looked.error());
    }
    if (!work->memory.contains(kBytesBefore)) {
      work->memory[kBytesBefore] = (*looked)->chunks().total_bytes;
      work->remember();
    }
    const auto settings = co_await work->settings();
    if (!settings) {
      co_return failure_of(settings.error());
    }
    const auto* inspection = work->node.inspection();
    if (inspection == nullptr) {
      co_return OnlineFailure{.code = "unavailable",
                              .text = "the server does not answer; this needs it running"};
    }
    work->page_size = settings->page_size;
    auto problem =
        online_problem(work->node.online->look(), *inspection, *settings, work->parameters.point);
    if (!problem.empty()) {
      co_return OnlineFailure{.code = "not_supported", .text = std::move(problem)};
    }
    work->kept_free = room_for_server(work, *inspection);
    if (auto full = space_problem(work); !full.empty()) {
      co_return OnlineFailure{.code = "no_space", .text = std::move(full)};
    }
    const auto points = inspection->scavenge_points();
    const auto point = points ? streams::find_scavenge_point(*points, work->parameters.point)
                              : Result<streams::ScavengePoint>(points.error());
    if (!point) {
      co_return failure_of(point.error());
    }
    if (auto failed = co_await work_beside(work, *point)) {
      work->drop_lock();
      co_return failed;
    }
  }
  // The memory has what is to be known from here on; links would keep the space of index tables
  // that the server replaces.
  if (const auto removed = co_await remove_shadow(work); !removed) {
    work->node.log.warning("the shadow of an online scavenge was not removed",
                           {{"reason", removed.error().message}});
  }
  if (auto failed = co_await server_phase(work)) {
    co_return failed;
  }
  VERGER_FAILPOINT("online.server.done");
  work->memory[kInstalled] = false;
  co_return std::nullopt;
}

}  // namespace
}  // namespace verger::agent::beside

namespace verger::agent {

Result<OnlineParameters> parse_online_parameters(const std::string& parameters_json) {
  const auto asked = nlohmann::json::parse(parameters_json, nullptr, false);
  if (!asked.is_object() || !asked.contains("point") || !asked["point"].is_number_integer()) {
    return Error{Errc::kInvalidArgument,
                 "parameters of online_scavenge: \"point\", the number of a scavenge point in the "
                 "log, is missing"};
  }
  OnlineParameters out{.point = asked["point"].get<std::int64_t>()};
  const auto threads = asked.value("threads", nlohmann::json(1));
  if (!threads.is_number_integer() || threads < 1 || threads > 4) {
    return Error{Errc::kInvalidArgument, "threads must be 1 to 4"};
  }
  out.threads = threads.get<std::int32_t>();
  return out;
}

std::string online_problem(const external::OnlineLook& look, const node::NodeInspection& inspection,
                           const ScavengeSettings& settings, std::int64_t point) {
  if (!look.problem.empty()) {
    return look.problem;
  }
  if (!look.one_file_system) {
    return fmt::format(
        "{} and {} are in different file systems, and files of both are to be "
        "linked into one directory",
        inspection.database_directory().string(), inspection.index_directory().string());
  }
  if (settings.ignores_hard_deletes) {
    return "the server runs with UnsafeIgnoreHardDelete, which only its own scavenge knows";
  }
  const auto points = inspection.scavenge_points();
  if (!points) {
    return points.error().message;
  }
  const auto found = streams::find_scavenge_point(*points, point);
  if (!found) {
    return found.error().message;
  }
  const auto chunks = inspection.chunks();
  if (!chunks.files.empty() && chunks.files.front().start > 0) {
    return fmt::format(
        "the log begins with chunk {} in its directory: older ones are in an archive, or missing; "
        "let the server scavenge itself",
        chunks.files.front().start);
  }
  if (chunks.chunk_size > 0 && found->position.value() / chunks.chunk_size >=
                                   inspection.positions().writer.value() / chunks.chunk_size) {
    return fmt::format("the chunk with scavenge point {} is not complete on this node", point);
  }
  return {};
}

net::awaitable<std::optional<OnlineEnd>> scavenge_online(LocalNode node, QuerySettings settings,
                                                         OnlineParameters parameters,
                                                         nlohmann::json memory) {
  const auto& access = *node.online;
  const auto machine = access.machine();
  const auto work = std::make_shared<beside::Work>(beside::Work{
      .node = node,
      .settings = std::move(settings),
      .parameters = parameters,
      .memory = std::move(memory),
      .machine = {machine.files, machine.clock, machine.random, machine.log},
      .place = {.database = access.place().database, .index = access.place().index_directory()}});
  for (int round = 0; round < beside::kMostRounds; ++round) {
    if (!co_await beside::server_is_there(work) && !work->stopping()) {
      co_return OnlineEnd{.code = "unavailable",
                          .text = "the server does not answer; this needs it running"};
    }
    auto failed =
        work->stopping() ? beside::Ended(beside::stopped()) : co_await beside::one_round(work);
    work->drop_lock();
    if (failed) {
      if (work->stopping() && !work->cancelled()) {
        co_return std::nullopt;
      }
      const bool useless = failed->code == "conflict" || failed->code == "corruption" ||
                           failed->code == "not_supported" || failed->code == "refused";
      if (work->cancelled() || useless) {
        // The state of what was switched is in place, or nothing was: the shadow is of no more use.
        static_cast<void>(co_await beside::remove_shadow(work));
        failed = work->cancelled() ? beside::Ended(beside::stopped()) : failed;
      }
      co_return OnlineEnd{.code = failed->code, .text = failed->text};
    }
    const auto looked = co_await fresh_look(work->node);
    const auto finished = looked ? (*looked)->last_finished_point() : std::nullopt;
    if (finished && finished->number >= parameters.point) {
      co_return OnlineEnd{.done = true, .text = beside::result_text(work, **looked)};
    }
  }
  co_return OnlineEnd{.code = "interrupted",
                      .text =
                          "older scavenges of the node were finished, and this point is not "
                          "reached; repeat it"};
}

}  // namespace verger::agent
