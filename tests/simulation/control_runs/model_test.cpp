#include "tests/simulation/control/model.h"

#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

#include "nodeagent/client/node_client.h"
#include "tests/support/controller/fake_cluster.h"
#include "tests/support/nodes/node_cluster.h"

// The model of a node, and the fake one of the controller's unit tests, answer as the embedded node
// does: the same requests to all, and what a client can conclude from the answers, step by step.
namespace verger::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SimWorld;

/// What a node shows to an observer inside; as far as the script compares it.
struct Inside {
  api::NodeState state = api::NodeState::kUnknown;
  std::int64_t finished = -1;    ///< number of the last scavenge point
  std::int64_t unfinished = -1;  ///< number of the point that a scavenge has not reached
  std::string running;           ///< id of the scavenge
  std::int32_t epoch = -1;
  std::string database;  ///< what differs from any other cluster's
};

/// Three nodes "n1" to "n3" of any sort, and the time they live in.
struct Rig {
  http::Client& client;
  std::function<http::Endpoint(const std::string&)> endpoint;
  std::function<std::optional<Inside>(const std::string&)> inside;  ///< nullopt: it is down
  std::function<void(const std::string&)> down;
  std::function<void(const std::string&)> restart;        ///< also of one that is down
  std::function<void(const std::string&)> fail_scavenge;  ///< the one that runs ends by an error
  /// The next request there is carried out, and its answer is lost.
  std::function<void(const std::string&)> lose_answer;
  std::function<void(net::awaitable<void>)> spawn;
  std::function<bool(const std::function<bool()>&, milliseconds)> run_until;

  void run_for(milliseconds time) const {
    run_until([] { return false; }, time);
  }
  [[nodiscard]] bool has_state(const std::string& name, api::NodeState state) const {
    const auto look = inside(name);
    return look && look->state == state;
  }
  [[nodiscard]] std::string leader() const {
    for (const auto* name : {"n1", "n2", "n3"}) {
      if (has_state(name, api::NodeState::kLeader)) {
        return name;
      }
    }
    return "";
  }
  [[nodiscard]] bool settled() const {
    int followers = 0;
    for (const auto* name : {"n1", "n2", "n3"}) {
      followers += has_state(name, api::NodeState::kFollower) ? 1 : 0;
    }
    return followers == 2 && !leader().empty();
  }
};

template <class T>
net::awaitable<void> keep(net::awaitable<client::Outcome<T>> work,
                          std::shared_ptr<std::optional<client::Outcome<T>>> into) {
  into->emplace(co_await std::move(work));
}

/// Sends the script's requests and writes down what they showed.
class Script {
 public:
  explicit Script(Rig rig) : rig_(std::move(rig)) {}

  std::vector<std::string> run() {
    wait([this] { return rig_.settled(); });
    rig_.run_for(seconds(3));  // gossip has been everywhere
    leader_ = rig_.leader();
    for (const auto* name : {"n1", "n2", "n3"}) {
      if (name != leader_) {
        (follower_.empty() ? follower_ : other_) = name;
      }
    }
    note("gossip", members(follower_));
    note("idle", current(follower_));
    note("no scavenge yet", said(ask(at(follower_).scavenges())));
    note("no point yet", newest_point(follower_));

    scavenge("nothing to do", follower_, /*sync_only=*/true);
    note("start", said(ask(at(follower_).start_scavenge({}))));
    note("again", said(ask(at(follower_).start_scavenge({}))));
    note("stop another",
         said(ask(at(follower_).stop_scavenge("5c1f6d2e-0b1a-4f0e-9d3c-7a5b8e2f4c60"))));
    idle(follower_);
    note("new point", state(follower_));
    note("not here", state(other_));
    note("the point, by its maker", newest_point(follower_));
    note("the point, by another", newest_point(other_));
    scavenge("the same point", other_, true);
    scavenge("once is enough", follower_, true);

    note("start", said(ask(at(follower_).start_scavenge({}))));
    wait([this] { return at_point(follower_); });
    const auto id = rig_.inside(follower_)->running;
    note("stop", said(ask(at(follower_).stop_current_scavenge())));
    rig_.run_for(seconds(3));
    note("stopped", state(follower_) + ", " + reported(follower_, id));
    scavenge("resumes", follower_, false);

    note("start", said(ask(at(other_).start_scavenge({.sync_only = true}))));
    wait([this] { return at_point(other_); });
    const auto interrupted = rig_.inside(other_)->running;
    // A node knows by the log alone which runs of a former process are open.
    for (int i = 0; i < 100 && !reported(other_, interrupted).ends_with("started"); ++i) {
      rig_.run_for(milliseconds(50));
    }
    rig_.restart(other_);
    wait([this] { return rig_.settled(); });
    rig_.run_for(seconds(5));
    note("restarted", state(other_) + ", " + reported(other_, interrupted));
    scavenge("resumes after a restart", other_, true);

    fail_and_resume();
    lose_a_reply();
    let_one_be_down();

    note("priority", said(ask(at(leader_).set_priority(-1))));
    rig_.run_for(seconds(3));
    note("gossip", members(leader_));
    note("resign of a follower", said(ask(at(follower_).resign())));
    rig_.run_for(seconds(3));
    note("leads on", rig_.leader() == leader_ ? "yes" : "no");
    const auto epoch = rig_.inside(leader_)->epoch;
    note("resign", said(ask(at(leader_).resign())));
    wait([this] { return rig_.settled() && rig_.leader() != leader_; });
    rig_.run_for(seconds(3));
    note("leads on", rig_.leader() == leader_ ? "yes" : "no");
    note("epoch grew", rig_.inside(leader_)->epoch > epoch ? "yes" : "no");
    note("gossip", members(leader_));
    return std::move(notes_);
  }

 private:
  /// "Errored" of 24.10 and later is "Interrupted" with a text here, as up to 24.6.
  void fail_and_resume() {
    note("start", said(ask(at(follower_).start_scavenge({}))));
    wait([this] { return at_point(follower_); });
    const auto failed = rig_.inside(follower_)->running;
    rig_.fail_scavenge(follower_);
    idle(follower_);
    note("failed", state(follower_) + ", " + reported(follower_, failed));
    scavenge("resumes after an error", follower_, false);
  }

  void lose_a_reply() {
    const auto before = rig_.inside(other_)->finished;
    rig_.lose_answer(other_);
    note("reply lost", said(ask(at(other_).start_scavenge({.sync_only = true}))));
    wait([&] { return rig_.inside(other_)->finished > before; });
    idle(other_);
    note("carried out all the same", state(other_));
    rig_.lose_answer(other_);
    note("reply lost", said(ask(at(other_).set_priority(3))));
    rig_.run_for(seconds(3));
    note("carried out all the same", members(other_));
    note("priority", said(ask(at(other_).set_priority(0))));
  }

  void let_one_be_down() {
    const auto database = rig_.inside(leader_)->database;
    for (const auto& name : {follower_, other_}) {
      note("the same database", rig_.inside(name)->database == database ? "yes" : "no");
    }
    rig_.down(other_);
    rig_.run_for(seconds(8));
    note("down", said(ask(at(other_).gossip())));
    note("down", said(ask(at(other_).start_scavenge({}))));
    note("the others", members(follower_));
    rig_.restart(other_);
    wait([this] { return rig_.settled(); });
    rig_.run_for(seconds(5));
    note("the others", members(follower_));
    note("back", state(other_));
  }

  client::NodeClient at(const std::string& name) {
    return {rig_.client, rig_.endpoint(name), client::Credentials{"admin", "changeit"}};
  }
  template <class T>
  client::Outcome<T> ask(net::awaitable<client::Outcome<T>> work) {
    const auto answer = std::make_shared<std::optional<client::Outcome<T>>>();
    rig_.spawn(keep(std::move(work), answer));
    wait([&answer] { return answer->has_value(); });
    return **answer;
  }
  template <class T>
  static std::string said(const client::Outcome<T>& outcome) {
    return fmt::format("{} {}", client::to_string(outcome.verdict), outcome.code);
  }
  void note(std::string_view what, const std::string& seen) {
    notes_.push_back(fmt::format("{}: {}", what, seen));
  }
  void wait(const std::function<bool()>& done) {
    if (!rig_.run_until(done, seconds(120))) {
      ADD_FAILURE() << "in vain, after " << (notes_.empty() ? "the start" : notes_.back());
    }
  }
  void idle(const std::string& name) {
    wait([this, &name] { return rig_.inside(name)->running.empty(); });
    rig_.run_for(seconds(3));  // until its end is known everywhere
  }
  void scavenge(std::string_view what, const std::string& name, bool sync_only) {
    const auto started = ask(at(name).start_scavenge({.sync_only = sync_only}));
    idle(name);
    note(what, fmt::format("{}, {}, {}", said(started), state(name),
                           started.value ? reported(name, started.value->id) : ""));
  }
  std::string current(const std::string& name) {
    const auto current = ask(at(name).current_scavenge());
    return fmt::format("{} {}", said(current), current.value && current.value->id.empty());
  }
  std::string newest_point(const std::string& name) {
    const auto page = ask(at(name).read_backward("$scavengePoints", std::nullopt, 1));
    std::string text = said(page);
    for (const auto& event : page.value.value_or(client::StreamPage()).events) {
      text += fmt::format(" {} {} {}", event.number, event.type, event.data);
    }
    return text;
  }
  std::string state(const std::string& name) {
    const auto look = rig_.inside(name).value_or(Inside{});
    return fmt::format("finished {} unfinished {}", look.finished, look.unfinished);
  }
  /// A scavenge runs and has its point.
  bool at_point(const std::string& name) {
    const auto look = rig_.inside(name);
    return look && !look->running.empty() && look->unfinished >= 0;
  }
  /// Its start, whether it reported work, its end.
  std::string reported(const std::string& name, const std::string& id) {
    const auto log = ask(at(name).scavenge_log(id, 20));
    std::string text = said(log);
    bool worked = false;
    for (const auto& event : log.value.value_or(std::vector<api::ScavengeEvent>())) {
      if (event.type == "$scavengeCompleted") {
        // Of an error each has words of its own.
        const bool own_words = event.error.starts_with("Error while scavenging DB: ");
        text += fmt::format(" {} \"{}\"", event.result, own_words ? "an error" : event.error);
      } else if (event.type == "$scavengeStarted") {
        text += " started";
      } else {
        worked = true;
      }
    }
    return text + (worked && text.find("Success") != std::string::npos ? " worked" : "");
  }
  std::string members(const std::string& name) {
    const auto gossip = ask(at(name).gossip());
    std::string text = said(gossip);
    int alive = 0;
    int leaders = 0;
    for (const auto& member : gossip.value.value_or(api::Gossip()).members) {
      alive += member.is_alive ? 1 : 0;
      leaders += member.state == api::NodeState::kLeader ? 1 : 0;
      if (member.http_ip == gossip.value->server_ip &&
          member.http_port == gossip.value->server_port) {
        text += fmt::format(" itself {} priority {}", api::to_string(member.state),
                            member.node_priority);
      }
    }
    return fmt::format("{} alive {} leaders {}", text, alive, leaders);
  }

  Rig rig_;
  std::string leader_;
  std::string follower_;
  std::string other_;
  std::vector<std::string> notes_;
};

std::optional<Inside> inside_of(node::NodeInspection* node) {
  if (node == nullptr) {
    return std::nullopt;
  }
  Inside out;
  out.state = node->state();
  out.database = node->database_id();
  out.epoch = node->positions().epoch_number.value();
  if (const auto finished = node->last_finished_point()) {
    out.finished = finished->number;
  }
  if (const auto unfinished = node->unfinished_scavenge()) {
    out.unfinished = unfinished->point.number;
  }
  if (const auto running = node->running_scavenge()) {
    out.running = running->id;
  }
  return out;
}

Rig rig_in(SimWorld& world, std::function<node::NodeInspection*(const std::string&)> node,
           std::function<void(const std::string&)> down,
           std::function<void(const std::string&)> restart,
           std::function<void(const std::string&)> fail_scavenge) {
  return {
      .client = world.host("client").client(),
      .endpoint =
          [](const std::string& name) {
            return http::Endpoint{.tls = false, .host = name, .port = kModelNodePort};
          },
      .inside = [node = std::move(node)](const std::string& name) { return inside_of(node(name)); },
      .down = std::move(down),
      .restart = std::move(restart),
      .fail_scavenge = std::move(fail_scavenge),
      .lose_answer =
          [&world](const std::string& name) {
            world.lose_answer = [&world, name](const testing::SimMessage& answer) {
              const bool lost = answer.from == name && answer.to == "client";
              if (lost) {
                world.schedule(milliseconds(0), [&world] { world.lose_answer = nullptr; });
              }
              return lost;
            };
          },
      .spawn = [&world](net::awaitable<void> work) { world.host("client").spawn(std::move(work)); },
      .run_until = [&world](const std::function<bool()>& done,
                            milliseconds limit) { return world.run_until(done, limit); }};
}

/// The next that a scavenge writes of how far it is has no room; what it writes after it has.
void fill_disk_of_scavenges(SimWorld& world, const std::string& name) {
  world.host(name).disk().set_fault_hook(
      [failed = false](const DiskOperation& operation) mutable -> std::optional<Error> {
        if (failed || !operation.path.string().contains("scavenging")) {
          return std::nullopt;
        }
        failed = true;
        return Error{Errc::kNoSpace, operation.path.string() + ": no space left"};
      });
}

std::vector<std::string> of_embedded_nodes() {
  SimWorld world(7);
  testing::NodeClusterOptions options;
  options.node.max_mem_table_size = 10;
  options.job_budget = Budget{.units = 1};
  options.job_pace = milliseconds(20);
  testing::NodeCluster cluster(world, options);
  cluster.boot_all();
  cluster.run_until_settled();
  for (int i = 0; i < 40; ++i) {
    cluster.append(*cluster.leader(), "kept", R"({"text":")" + std::string(2'000, 'x') + "\"}");
  }
  const auto index = [](const std::string& name) {
    return static_cast<std::size_t>(name[1] - '1');
  };
  return Script(rig_in(
                    world,
                    [&](const std::string& name) -> node::NodeInspection* {
                      auto* node = cluster.node(index(name));
                      return node == nullptr ? nullptr : &node->inspection();
                    },
                    [&](const std::string& name) { cluster.crash(index(name), /*power=*/false); },
                    [&](const std::string& name) {
                      if (cluster.node(index(name)) != nullptr) {
                        cluster.crash(index(name), /*power=*/false);
                      }
                      ASSERT_TRUE(cluster.boot(index(name)).has_value());
                    },
                    [&](const std::string& name) { fill_disk_of_scavenges(world, name); }))
      .run();
}

std::vector<std::string> of_models() {
  SimWorld world(7);
  for (const auto* name : {"n1", "n2", "n3", "client"}) {
    world.add_host(name).boot();
  }
  ModelCluster model(world, {.voters = {"n1", "n2", "n3"}, .shows_points = true}, 11);
  const auto boot = [&](const std::string& name) {
    auto node = model.boot(name);
    world.host(name).serve_http(kModelNodePort, node->handler());
    world.host(name).keep(std::move(node));
  };
  for (const auto* name : {"n1", "n2", "n3"}) {
    boot(name);
  }
  model.begin();
  auto notes = Script(rig_in(
                          world, [&](const std::string& name) { return model.node(name); },
                          [&](const std::string& name) { world.host(name).crash(/*power=*/false); },
                          [&](const std::string& name) {
                            if (world.host(name).up()) {
                              world.host(name).crash(/*power=*/false);
                            }
                            world.host(name).boot();
                            boot(name);
                          },
                          [&](const std::string& name) { model.fail_scavenge(name); }))
                   .run();
  for (const auto* name : {"n1", "n2", "n3"}) {
    world.host(name).crash(/*power=*/false);
  }
  return notes;
}

/// Virtual time passes only while something sleeps.
net::awaitable<void> let_time_pass(test::VirtualTime* time, milliseconds limit) {
  constexpr milliseconds kStep{20};
  for (milliseconds passed{0}; passed < limit; passed += kStep) {
    co_await time->sleep_for(kStep);
  }
}

/// Those that the unit tests of the controller stand on.
std::vector<std::string> of_fakes() {
  test::VirtualTime time;
  net::io_context context;
  test::FakeCluster cluster(time);
  cluster.points_answer = 200;
  const auto index = [](const std::string& name) { return name.substr(1); };
  return Script({.client = cluster,
                 .endpoint =
                     [&](const std::string& name) {
                       return http::Endpoint{
                           .tls = false, .host = "10.0.0." + index(name), .port = 2113};
                     },
                 .inside = [&](const std::string& name) -> std::optional<Inside> {
                   cluster.pass_time();
                   const auto& node = cluster.node(name);
                   if (!node.up) {
                     return std::nullopt;
                   }
                   return Inside{.state = node.state,
                                 .finished = node.shown_finished().value_or(-1),
                                 .unfinished = node.unfinished.value_or(-1),
                                 .running = node.running ? node.running->id : "",
                                 .epoch = cluster.epoch,
                                 .database = node.database};
                 },
                 .down = [&](const std::string& name) { cluster.node(name).up = false; },
                 .restart =
                     [&](const std::string& name) {
                       cluster.node(name).up = true;
                       cluster.restart(name);
                     },
                 .fail_scavenge =
                     [&](const std::string& name) {
                       cluster.node(name).next_ends = {
                           "Interrupted: Error while scavenging DB: no space left."};
                     },
                 .lose_answer =
                     [&](const std::string& name) {
                       cluster.fate = [name, lost = false](const test::FakeNode& to,
                                                           const http::Request&) mutable {
                         const bool now = !lost && to.name == name;
                         lost = lost || now;
                         return now ? std::optional(test::Fate::kReplyLost) : std::nullopt;
                       };
                     },
                 .spawn =
                     [&](net::awaitable<void> work) {
                       net::co_spawn(context, std::move(work), [](const std::exception_ptr&) {});
                     },
                 .run_until =
                     [&](const std::function<bool()>& done, milliseconds limit) {
                       net::co_spawn(context, let_time_pass(&time, limit),
                                     [](const std::exception_ptr&) {});
                       return time.run(context, done, limit);
                     }})
      .run();
}

void expect_alike(const std::vector<std::string>& expected, const std::vector<std::string>& seen) {
  ASSERT_EQ(expected.size(), seen.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i], seen[i]) << "step " << i;
  }
}

TEST(Model, AnswersAsTheEmbeddedNodeDoes) { expect_alike(of_embedded_nodes(), of_models()); }

TEST(FakeCluster, AnswersAsTheEmbeddedNodeDoes) { expect_alike(of_embedded_nodes(), of_fakes()); }

}  // namespace
}  // namespace verger::sim
