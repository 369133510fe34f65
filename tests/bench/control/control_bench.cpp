// Measures the controller: planning, starting on a long journal, many runs at once. A program of
// its own, in virtual time where runs are measured; times are of this thread's processor, and stand
// beside a yardstick of the same run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <stdexcept>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "controller/api/retention.h"
#include "controller/executor/run_snapshot.h"
#include "controller/journal/etcd_journal.h"
#include "controller/journal/sealed_snapshots.h"
#include "controller/operations/operation_modules.h"
#include "controller/scheduler/scheduler.h"
#include "engine/base/digest.h"
#include "engine/base/directories.h"
#include "planner/make_plan.h"
#include "tests/bench/control/tls_fleet.h"
#include "tests/support/controller/controller_harness.h"
#include "tests/support/processes/etcd.h"
#include "tests/unit/planner/clusters.h"

namespace {

using namespace verger;              // NOLINT(google-build-using-namespace): a program of its own
using namespace verger::controller;  // NOLINT(google-build-using-namespace)
using test::ControllerHarness;

/// Of this thread: other programs on a busy machine do not count.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <class Work>
double once_ms(const Work& work) {
  const auto begin = cpu_ms();
  work();
  return cpu_ms() - begin;
}

/// The middle of seven times.
template <class Work>
double median_ms(const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    times.push_back(once_ms(work));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench: {}\n", result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

void planning(int nodes) {
  auto snapshot = planner::testing::cluster(nodes);
  std::ranges::reverse(snapshot.nodes);
  const planner::Policy policy;
  const auto plan = planner::make_plan(snapshot, policy);
  const double time = median_ms([&] { static_cast<void>(planner::make_plan(snapshot, policy)); });
  const auto text = planner::hashed_text(*plan);
  const double hashing = median_ms([&] { static_cast<void>(sha256(as_bytes(text))); });
  fmt::print("planner alone, {} nodes: {:.2f} ms, {} stages; x {:.1f} SHA-256 of its {} bytes\n",
             nodes, time, plan->stages.size(), time / hashing, text.size());
}

void plan_latency() {
  ControllerHarness harness(9);
  harness.boot();
  harness.register_cluster();
  const auto look = [&] {
    static_cast<void>(must(harness.wait_for(harness.executor->observe("prod"))));
  };
  const auto policy = ControllerHarness::quick_policy();
  const auto plan = [&] {
    static_cast<void>(must(harness.wait_for(harness.executor->make_plan("prod", policy, "bench"))));
  };
  const double looking = median_ms(look);
  const double planning = median_ms(plan);
  fmt::print("plan of 9 nodes with agents, all questions asked: {:.1f} ms; x {:.1f} a look\n",
             planning, planning / looking);
}

/// The events of one run to its end and of its plan, as the journal has them.
struct Pattern {
  std::vector<JournalEvent> run;
  std::vector<JournalEvent> plan;
};
Pattern events_of_a_run() {
  ControllerHarness harness;
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(ControllerHarness::quick_policy());
  if (!harness.run_to_end(run)) {
    std::exit(1);
  }
  const auto plans = must(harness.journal->streams("plan/"));
  return {.run = must(harness.journal->read("run/" + run)),
          .plan = must(harness.journal->read(plans.front()))};
}

/// `runs` runs of `events_each` events: one that ended well, with more progress of its first step.
/// The last one has not ended.
void fill(Journal& journal, ControllerEpoch epoch, int runs, int events_each) {
  const auto pattern = events_of_a_run().run;
  const auto acted = std::ranges::find(pattern, "step-acted", &JournalEvent::type);
  const auto step = nlohmann::json::parse(acted->data).at("step").get<std::string>();
  for (int run = 0; run < runs; ++run) {
    std::vector<NewEvent> events;
    for (const auto& event : pattern) {
      if (run + 1 == runs && event.type == "step-done") {
        break;
      }
      events.push_back({event.type, event.data});
      if (event.sequence != acted->sequence) {
        continue;
      }
      for (int i = static_cast<int>(pattern.size()); i < events_each; ++i) {
        const nlohmann::json progress{{"phase", "Executing"},
                                      {"chunks_done", i},
                                      {"chunks_total", 15'000},
                                      {"bytes_saved", i * 1'000LL}};
        events.push_back(
            {"step-progress",
             nlohmann::json{{"step", step}, {"progress", progress}, {"memo", {}}}.dump()});
      }
    }
    static_cast<void>(must(journal.append(fmt::format("run/00000000-0000-4000-8000-{:012}", run),
                                          Revision(0), std::move(events), epoch)));
  }
}

void replay(const Path& directory, int runs, int events_each) {
  std::filesystem::remove_all(directory.string());
  ControllerHarness clock_owner;
  auto& clock = clock_owner.time;
  auto& files = posix_file_system();
  must(make_directories_durably(files, directory));
  const auto path = directory / "journal.db";
  const auto start = [&](Journal& journal, ControllerEpoch epoch) {
    Registry registry(journal, epoch);
    must(registry.load());
    net::io_context context;
    auto kinds = standard_step_kinds();
    SeededRandom random(1);
    Executor executor({.executor = context.get_executor(),
                       .journal = journal,
                       .registry = registry,
                       .network = clock_owner.network(),
                       .random = random,
                       .kinds = kinds,
                       .epoch = epoch});
    must(executor.start());
  };
  {
    auto journal = must(open_sqlite_journal(files, path, clock));
    fill(*journal, must(journal->begin_epoch("bench")), runs, events_each);
  }
  double scanning = 0;
  double reading = 0;
  std::int64_t count = 0;
  {
    auto journal = must(open_sqlite_journal(files, path, clock));
    scanning = once_ms([&] {
      for (Sequence at(0);;) {
        const auto events = must(journal->read_all(at, 10'000));
        if (events.empty()) {
          break;
        }
        at = events.back().sequence;
        count = at.value();
      }
    });
    const auto epoch = must(journal->begin_epoch("bench"));
    reading = once_ms([&] { start(*journal, epoch); });  // and keeps snapshots
  }
  const double next = once_ms([&] {
    auto journal = must(open_sqlite_journal(files, path, clock));
    start(*journal, must(journal->begin_epoch("bench")));
  });
  fmt::print(
      "start on {} events in {} runs: {:.0f} ms, x {:.3f} reading them once ({:.0f} ms); without a "
      "snapshot {:.0f} ms\n",
      count, runs, next, next / scanning, scanning, reading);
  std::filesystem::remove_all(directory.string());
}

/// What the journal holds: "audit 1040, plan 50, ...".
std::string kinds_of_events(Journal& journal) {
  std::map<std::string, std::int64_t> counts;
  for (Sequence at(0);;) {
    const auto events = must(journal.read_all(at, 10'000));
    if (events.empty()) {
      break;
    }
    for (const auto& event : events) {
      ++counts[event.stream.substr(0, event.stream.find('/'))];
    }
    at = events.back().sequence;
  }
  std::string out;
  for (const auto& [kind, count] : counts) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", kind, count);
  }
  return out;
}

/// A year of a weekly policy on ten clusters: each run scavenges for an hour, and reports
/// progress every five seconds. With `compacting`, the journal is compacted after each week.
void year(const std::string& name, ControllerHarness& clock_owner, std::unique_ptr<Journal> store,
          const Path& directory, bool compacting) {
  const auto journal = std::make_unique<SealedSnapshots>(std::move(store), null_log());
  constexpr int kWeeks = 52;
  constexpr int kClusters = 10;
  constexpr int kProgress = 720;
  constexpr std::size_t kAtOnce = 50;
  auto& clock = clock_owner.time;
  const auto epoch = must(journal->begin_epoch("bench"));
  const auto [pattern, plan] = events_of_a_run();
  const auto acted = std::ranges::find(pattern, "step-acted", &JournalEvent::type);
  const auto step = nlohmann::json::parse(acted->data).at("step").get<std::string>();
  Registry registry(*journal, epoch);
  auto kinds = standard_step_kinds();
  SeededRandom random(1);
  const auto append = [&](const std::string& stream, std::vector<NewEvent> events) {
    for (std::size_t begin = 0; begin < events.size(); begin += kAtOnce) {
      const auto end = std::min(events.size(), begin + kAtOnce);
      static_cast<void>(must(journal->append(stream, kAnyRevision,
                                             {events.begin() + static_cast<std::ptrdiff_t>(begin),
                                              events.begin() + static_cast<std::ptrdiff_t>(end)},
                                             epoch)));
    }
  };
  std::int64_t removed = 0;
  for (int week = 0; week < kWeeks; ++week) {
    for (int cluster = 0; cluster < kClusters; ++cluster) {
      std::vector<NewEvent> events;
      for (const auto& event : pattern) {
        events.push_back({event.type, event.data});
        for (int i = 0; event.sequence == acted->sequence && i < kProgress; ++i) {
          const nlohmann::json progress{{"phase", "Executing"},
                                        {"chunks_done", i},
                                        {"chunks_total", 15'000},
                                        {"bytes_saved", i * 1'000LL},
                                        {"scavenge_id", "7980f017-8a52-4b0e-9d1c-0f3f4f6a2b11"}};
          events.push_back({"step-progress", nlohmann::json{{"step", step},
                                                            {"progress", progress},
                                                            {"memo", nlohmann::json::object()}}
                                                 .dump()});
        }
      }
      const auto run = fmt::format("run/00000000-0000-4000-{:04}-{:012}", week, cluster);
      const auto plan_stream = fmt::format("plan/{:060}{:04}", week, cluster);
      append(plan_stream, {{plan.front().type, plan.front().data}});
      const nlohmann::json made{
          {"cluster", "prod"}, {"by", "policy/weekly"}, {"at", clock.now().value()}};
      must(journal->save_snapshot({plan_stream, Revision(1), made.dump(), "{}"}, epoch));
      append(run, std::move(events));
      must(journal->save_snapshot(snapshot_of(must(replay_run(*journal, run))), epoch));
      const nlohmann::json settled{{"due", clock.now().value()},
                                   {"outcome", "started"},
                                   {"run", run.substr(4)},
                                   {"plan", plan_stream.substr(5)},
                                   {"reason", ""}};
      append(fmt::format("schedule/weekly/c{}", cluster),
             {{std::string(events::kScheduleSettled), settled.dump()}});
      append("audit", {{"audit-asked", R"({"by":"ann","method":"POST","reason":"a test"})"},
                       {"audit-answered", R"({"asked":1,"status":202})"}});
    }
    clock.jump(std::chrono::hours(24 * 7));
    if (!compacting) {
      continue;
    }
    net::io_context context;
    Executor executor({.executor = context.get_executor(),
                       .journal = *journal,
                       .registry = registry,
                       .network = clock_owner.network(),
                       .random = random,
                       .kinds = kinds,
                       .epoch = epoch});
    must(executor.start());
    RetentionRules rules;
    rules.runs_of_cluster *= kClusters;  // here all runs are of one
    Retention retention({.journal = *journal,
                         .runs = executor,
                         .clock = clock,
                         .log = null_log(),
                         .epoch = epoch,
                         .files = posix_file_system(),
                         .archive = directory / "archive",
                         .rules = rules});
    auto done = net::co_spawn(context, retention.compact("bench", ""), net::use_future);
    context.run();
    removed += must(done.get()).events();
  }
  const auto size = must(journal->size());
  must(journal->verify());
  fmt::print("{}, a year, {}: {} events, {:.1f} MiB on disk, {:.1f} MiB in use; {} removed\n  {}\n",
             name, compacting ? "compacted" : "not compacted", size.events,
             static_cast<double>(size.bytes) / (1 << 20),
             static_cast<double>(size.bytes_in_use) / (1 << 20), removed,
             kinds_of_events(*journal));
  static_cast<void>(std::fflush(stdout));
}

void years(const Path& directory) {
  auto& files = posix_file_system();
  for (const bool compacting : {false, true}) {
    std::filesystem::remove_all(directory.string());
    must(make_directories_durably(files, directory));
    ControllerHarness one;
    year("SQLite", one, must(open_sqlite_journal(files, directory / "journal.db", one.time)),
         directory, compacting);
    ControllerHarness other;
    test::EtcdServer etcd;
    // Sizes are measured here, so a disk that is slow for a moment ends nothing.
    const EtcdOptions options{.endpoints = must(parse_etcd_endpoints(etcd.url())),
                              .call_deadline = std::chrono::seconds(60)};
    year("etcd", other, must(open_etcd_journal(options, other.time)), directory, compacting);
  }
  std::filesystem::remove_all(directory.string());
}

/// Many clusters of three behind one client: 10.0.<cluster>.<node>.
class Fleet final : public http::Client {
 public:
  Fleet(test::VirtualTime& time, int clusters) {
    for (int i = 0; i < clusters; ++i) {
      clusters_.push_back(std::make_unique<test::FakeCluster>(time));
      clusters_.back()->scavenge_takes = std::chrono::minutes(10);
    }
  }
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    const auto last = to.host.rfind('.');
    const auto middle = to.host.rfind('.', last - 1);
    const auto high = to.host.rfind('.', middle - 1);
    const auto number = [&](std::size_t from, std::size_t until) {
      return std::stoul(to.host.substr(from + 1, until - from - 1));
    };
    auto& cluster = *clusters_.at(number(high, middle) * 200 + number(middle, last));
    to.host = "10.0.0" + to.host.substr(last);
    ++messages;
    return cluster.send(std::move(to), std::move(request), deadline);
  }
  std::int64_t messages = 0;

 private:
  std::vector<std::unique_ptr<test::FakeCluster>> clusters_;
};

void fleet(int clusters) {
  ControllerHarness harness;
  Fleet client(harness.time, clusters);
  harness.options = {};  // a look each second, progress each five, as in production
  harness.client = &client;
  harness.boot();
  std::vector<std::string> names;
  for (int i = 0; i < clusters; ++i) {
    ClusterConfig config;
    config.name = fmt::format("c{}", i);
    for (int node = 1; node <= 3; ++node) {
      const auto host = fmt::format("10.{}.{}.{}", i / 200, i % 200, node);
      config.nodes.push_back({fmt::format("n{}", node), fmt::format("http://{}:2113", host),
                              fmt::format("http://{}:2114", host)});
    }
    names.push_back(config.name);
    must(harness.registry->add(std::move(config)));
  }
  const auto policy = ControllerHarness::quick_policy();
  const double starting = once_ms([&] {
    for (const auto& name : names) {
      const auto made = must(harness.wait_for(harness.executor->make_plan(name, policy, "bench")));
      if (!made || !harness.wait_for(harness.executor->apply(made->plan->hash, "bench"))) {
        fmt::print(stderr, "bench: no run of {}\n", name);
        std::exit(1);
      }
    }
  });
  const auto before = client.messages;
  constexpr std::chrono::seconds kWindow{30};
  const double working = once_ms([&] { harness.run_until([] { return false; }, kWindow); });
  fmt::print(
      "{} agents, {} runs at work: {:.0f} % of one processor, the {} answers a second of the "
      "agents "
      "and nodes included; plans and starts {:.0f} ms each; peak memory {:.0f} MiB with the fake "
      "nodes\n",
      3 * clusters, harness.executor->active_runs("").size(),
      working / 10 / static_cast<double>(kWindow.count()),
      (client.messages - before) / kWindow.count(), starting / clusters, peak_mib());
}

int run_all(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "all";
  const auto wanted = [what](std::string_view name) { return what == "all" || what == name; };
  const char* temporary = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): one thread
  const auto directory =
      Path(temporary == nullptr ? "/tmp" : temporary) / fmt::format("verger-bench-{}", getpid());
  if (wanted("plan")) {
    planning(1'000);
    plan_latency();
  }
  if (wanted("fleet")) {
    fleet(334);
  }
  if (wanted("tls")) {
    bench::tls_fleet(argc > 2 ? std::atoi(argv[2]) : 1'000, std::chrono::seconds(120));
  }
  if (what == "year") {
    years(directory);  // needs an etcd, and some minutes
  }
  if (wanted("replay")) {
    replay(directory, 100, 10'000);
    replay(directory, 10'000, 100);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "verger-bench-control: {}\n", error.what());
    return 1;
  }
}
