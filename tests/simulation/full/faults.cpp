#include "tests/simulation/full/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace verger::sim {

using std::chrono::milliseconds;

namespace {

constexpr std::array<std::string_view, 16> kKinds = {
    "lost messages",
    "late messages",
    "duplicates",
    "broken links",
    "partition",
    "isolation",
    "crash",
    "crash at failpoint",
    "crash in disk operation",
    "pause",
    "full disk",
    "slow disk",
    "clock step",
    "agent gone",
    "foreign scavenge",
    "election out of turn",
};
constexpr milliseconds kMeddlersDeadline{3'000};

std::string_view name_of(Power power) {
  switch (power) {
    case Power::kStays:
      return "killed";
    case Power::kCut:
      return "power cut";
    case Power::kTorn:
      return "power cut, torn";
  }
  return "";
}

}  // namespace

FaultInjector::FaultInjector(Cluster& cluster, std::uint64_t seed)
    : cluster_(cluster), world_(cluster.world()), random_(seed) {
  choose();
}

FaultInjector::~FaultInjector() {
  for (const auto name : kNodes) {
    world_.host(std::string(name)).disk().set_fault_hook(nullptr);
  }
  world_.host(std::string(kController)).disk().set_fault_hook(nullptr);
}

void FaultInjector::choose() {
  // Between one kind and all of them.
  const auto chance = 1 + random_.below(kKinds.size());
  for (const auto kind : kKinds) {
    if (random_.below(kKinds.size()) < chance) {
      kinds_.emplace_back(kind);
    }
  }
  if (kinds_.empty()) {
    kinds_.emplace_back(kKinds.at(random_.below(kKinds.size())));
  }
  mean_gap_ = milliseconds(300 + random_.below(3000));
  duration_ = milliseconds(2000 + random_.below(14'000));
}

std::string FaultInjector::describe() const {
  return fmt::format("{} for {} ms, one in {} ms", fmt::join(kinds_, ", "), duration_.count(),
                     mean_gap_.count());
}

void FaultInjector::begin() {
  over_ = false;
  const int mine = ++generation_;
  world_.schedule(duration_, [this, mine] {
    if (mine == generation_) {
      over_ = true;
    }
  });
  next_fault();
}

void FaultInjector::next_fault() {
  const int mine = generation_;
  world_.schedule(
      milliseconds(1 + random_.below(2 * static_cast<std::uint64_t>(mean_gap_.count()))),
      [this, mine] {
        if (mine == generation_ && !over_) {
          carry_out();
          next_fault();
        }
      });
}

std::string_view FaultInjector::any_program() {
  const auto which = random_.below(kNodes.size() + 2);  // the controller twice as often
  return which < kNodes.size() ? kNodes.at(which) : kController;
}

std::string_view FaultInjector::any_node() { return kNodes.at(random_.below(kNodes.size())); }

Power FaultInjector::any_power() { return static_cast<Power>(random_.below(3)); }

milliseconds FaultInjector::any_pause() {
  return milliseconds(random_.below(4) == 0 ? 50 + random_.below(6000) : 50 + random_.below(500));
}

void FaultInjector::crash(std::string_view host, Power power, std::string_view where) {
  if (cluster_.crash(host, power, any_pause())) {
    cluster_.trace().add(world_.now(), host, fmt::format("FAULT {} {}", name_of(power), where));
    ++tally_[fmt::format("{} {}", host == kController ? "controller" : "node", name_of(power))];
    if (!where.empty()) {
      ++tally_[fmt::format("crash {}", where.substr(0, where.find(':')))];
    }
  }
}

void FaultInjector::arm_disk(std::string_view host) {
  const auto left = std::make_shared<std::uint64_t>(1 + random_.below(120));
  const auto power = random_.below(3) == 0 ? Power::kCut : Power::kTorn;
  world_.host(std::string(host))
      .disk()
      .set_fault_hook([this, left, power, on = std::string(host),
                       mine = generation_](const DiskOperation& operation) -> std::optional<Error> {
        if (*left == 0 || mine != generation_ || --*left != 0) {
          return std::nullopt;
        }
        crash(on, power,
              fmt::format("in disk operation: {} {}", operation.kind, operation.path.string()));
        return Error{Errc::kIo, operation.path.string() + ": the power is off"};
      });
}

/// An operator calls a node by hand, past the controller; counted where the node agreed.
void FaultInjector::meddle(std::string_view kind, std::string_view node, std::string target) {
  cluster_.trace().add(world_.now(), node, fmt::format("FAULT {}", kind));
  auto& host = world_.host(std::string(kMeddler));
  http::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.headers.set("Authorization", http::basic_authorization("admin", "changeit"));
  host.spawn([](FaultInjector& self, testing::SimHost& on, std::string_view what, http::Endpoint to,
                http::Request asked) -> net::awaitable<void> {
    const auto answer =
        co_await on.client().send(std::move(to), std::move(asked), kMeddlersDeadline);
    if (answer && answer->status == 200) {
      ++self.tally_[std::string(what)];
    }
  }(*this, host, kind, endpoint(node, kNodePort), std::move(request)));
}

void FaultInjector::carry_out() {
  const auto& kind = kinds_.at(random_.below(kinds_.size()));
  const int mine = generation_;
  const auto later = [this, mine](std::uint64_t longest_ms, std::function<void()> action) {
    world_.schedule(milliseconds(20 + random_.below(longest_ms)),
                    [this, mine, action = std::move(action)] {
                      if (mine == generation_) {
                        action();
                      }
                    });
  };
  auto& faults = world_.faults;
  const auto some = [this] { return static_cast<unsigned>(10 + random_.below(250)); };
  if (kind == "lost messages") {
    faults.lose_request = some();
    faults.lose_response = some();
    later(4000, [&faults] { faults.lose_request = faults.lose_response = 0; });
  } else if (kind == "late messages") {
    faults.long_delay = some();
    faults.longest_delay = milliseconds(50 + random_.below(3000));
    later(4000, [&faults] { faults.long_delay = 0; });
  } else if (kind == "duplicates") {
    faults.duplicate_request = some();
    later(4000, [&faults] { faults.duplicate_request = 0; });
  } else if (kind == "broken links") {
    faults.break_link = some() / 5;
    later(2000, [&faults] { faults.break_link = 0; });
  } else if (kind == "partition") {
    const auto a = any_program();
    const auto b = any_node();
    if (a != b) {
      cluster_.trace().add(world_.now(), a, fmt::format("FAULT cut off from {}", b));
      world_.cut(std::string(a), std::string(b));
      later(5000, [this] { world_.heal(); });
    }
  } else if (kind == "isolation") {
    const auto host = any_program();
    cluster_.trace().add(world_.now(), host, "FAULT isolated");
    world_.isolate(std::string(host));
    later(5000, [this] { world_.heal(); });
  } else if (kind == "crash") {
    if (random_.below(2) == 0) {
      event_countdown_ = 1 + random_.below(400);
    } else {
      crash(any_program(), any_power(), {});
    }
  } else if (kind == "crash at failpoint") {
    failpoint_host_ = any_program();
    failpoint_countdown_ = 1 + random_.below(8);
  } else if (kind == "crash in disk operation") {
    arm_disk(any_program());
  } else if (kind == "pause") {
    const auto name = any_program();
    auto& host = world_.host(std::string(name));
    const milliseconds pause(random_.below(4) == 0 ? 50 + random_.below(6000)
                                                   : 50 + random_.below(1000));
    if (host.up() && !host.dying()) {
      cluster_.trace().add(world_.now(), name, fmt::format("FAULT pauses {} ms", pause.count()));
      host.stay_busy(pause);
      ++tally_[fmt::format("{} paused", name == kController ? "controller" : "node")];
    }
  } else if (kind == "full disk") {
    const auto host = std::string(any_program());
    cluster_.trace().add(world_.now(), host, "FAULT disk fills");
    world_.host(host).disk().set_free_space(random_.below(20'000));
    later(4000, [this, host] { world_.host(host).disk().set_free_space(std::nullopt); });
  } else if (kind == "slow disk") {
    const auto host = any_node();
    const milliseconds longest(10 + random_.below(random_.below(4) == 0 ? 3000 : 300));
    cluster_.trace().add(world_.now(), host,
                         fmt::format("FAULT disk syncs in up to {} ms", longest.count()));
    cluster_.slow_disk(host, longest);
    later(5000, [this, host] { cluster_.slow_disk(host, milliseconds(0)); });
  } else if (kind == "clock step") {
    const auto host = std::string(any_program());
    const auto step = static_cast<std::int64_t>(random_.below(7'200'000)) - 3'600'000;
    cluster_.trace().add(world_.now(), host, fmt::format("FAULT clock steps by {} ms", step));
    world_.host(host).clock_skew += milliseconds(step);
    ++tally_["clock step"];
  } else if (kind == "agent gone") {
    if (cluster_.stop_agent(any_node(), milliseconds(100 + random_.below(8'000)))) {
      ++tally_["agent gone"];
    }
  } else if (kind == "foreign scavenge") {
    // To the latest point there is: a new one would make the run's report one of the past.
    meddle("foreign scavenge", any_node(), "/admin/scavenge?syncOnly=true");
  } else if (kind == "election out of turn") {
    for (const auto name : kNodes) {
      const auto* node = cluster_.node(name);
      if (node != nullptr && node->state() == api::NodeState::kLeader) {
        meddle("election out of turn", name, "/admin/node/resign");
        break;
      }
    }
  }
}

void FaultInjector::failpoint(std::string_view name) {
  auto* host = world_.running();
  if (host == nullptr || failpoint_countdown_ == 0 || host->name() != failpoint_host_ ||
      host->dying()) {
    return;
  }
  if (--failpoint_countdown_ == 0) {
    ++tally_[fmt::format("failpoint {}", name)];
    crash(host->name(), any_power(), fmt::format("at failpoint: {}", name));
  }
}

void FaultInjector::before_event() {
  if (event_countdown_ != 0 && --event_countdown_ == 0) {
    crash(any_program(), any_power(), {});
  }
}

void FaultInjector::heal() {
  over_ = true;
  ++generation_;
  failpoint_countdown_ = 0;
  event_countdown_ = 0;
  world_.faults = testing::NetworkFaults{};
  world_.heal();
  const auto whole = [this](std::string_view name) {
    auto& host = world_.host(std::string(name));
    host.disk().set_free_space(std::nullopt);
    host.clock_skew = milliseconds(0);
  };
  for (const auto name : kNodes) {
    whole(name);
    cluster_.slow_disk(name, milliseconds(0));
  }
  whole(kController);
  cluster_.trace().add(world_.now(), "", "everything is healed");
  cluster_.start_what_is_down();
}

FaultTally FaultInjector::tally() const {
  auto tally = tally_;
  const auto& counts = world_.counts;
  const auto add = [&tally](std::string_view kind, std::uint64_t count) {
    if (count > 0) {
      tally[std::string(kind)] += count;
    }
  };
  add("request lost", counts.requests_lost);
  add("answer lost", counts.responses_lost);
  add("request twice", counts.requests_duplicated);
  add("message late", counts.delayed_long);
  add("link broken", counts.links_broken);
  add("message stopped by a partition", counts.partitioned);
  add("sync took long", cluster_.slow_syncs - cluster_.slow_syncs_of_jobs);
  add("sync of a job took long", cluster_.slow_syncs_of_jobs);
  for (const auto* list : {&kNodes}) {
    for (const auto name : *list) {
      add("write refused by a full disk", world_.host(std::string(name)).disk().no_space_count());
    }
  }
  add("write refused by a full disk",
      world_.host(std::string(kController)).disk().no_space_count());
  return tally;
}

}  // namespace verger::sim
