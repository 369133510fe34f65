#include "tests/simulation/control/model.h"

#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

#include "nodeagent/client/node_client.h"
#include "tests/support/nodes/node_cluster.h"

// The model of a node answers as the embedded node does: the same requests to both, and what a
// client can conclude from the answers, step by step.
namespace verger::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SimWorld;

/// Three nodes of either sort.
struct Rig {
  SimWorld& world;
  std::function<node::NodeInspection*(const std::string&)> node;
  std::function<void(const std::string&)> restart;

  [[nodiscard]] std::string leader() const {
    for (const auto* name : {"n1", "n2", "n3"}) {
      if (node(name) != nullptr && node(name)->state() == api::NodeState::kLeader) {
        return name;
      }
    }
    return "";
  }
  [[nodiscard]] bool settled() const {
    int followers = 0;
    for (const auto* name : {"n1", "n2", "n3"}) {
      followers += node(name) != nullptr && node(name)->state() == api::NodeState::kFollower;
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
    rig_.world.run_for(seconds(3));  // gossip has been everywhere
    leader_ = rig_.leader();
    for (const auto* name : {"n1", "n2", "n3"}) {
      if (name != leader_) {
        (follower_.empty() ? follower_ : other_) = name;
      }
    }
    note("gossip", members(follower_));
    note("idle", current(follower_));
    note("no scavenge yet", said(ask(at(follower_).scavenges())));

    scavenge("nothing to do", follower_, /*sync_only=*/true);
    note("start", said(ask(at(follower_).start_scavenge({}))));
    note("again", said(ask(at(follower_).start_scavenge({}))));
    note("stop another",
         said(ask(at(follower_).stop_scavenge("5c1f6d2e-0b1a-4f0e-9d3c-7a5b8e2f4c60"))));
    idle(follower_);
    note("new point", state(follower_));
    note("not here", state(other_));
    scavenge("the same point", other_, true);
    scavenge("once is enough", follower_, true);

    note("start", said(ask(at(follower_).start_scavenge({}))));
    wait([this] { return rig_.node(follower_)->unfinished_scavenge().has_value(); });
    const auto id = rig_.node(follower_)->running_scavenge()->id;
    note("stop", said(ask(at(follower_).stop_current_scavenge())));
    rig_.world.run_for(seconds(3));
    note("stopped", state(follower_) + ", " + told(follower_, id));
    scavenge("resumes", follower_, false);

    note("start", said(ask(at(other_).start_scavenge({.sync_only = true}))));
    wait([this] { return rig_.node(other_)->unfinished_scavenge().has_value(); });
    const auto interrupted = rig_.node(other_)->running_scavenge()->id;
    // A node knows by the log alone which runs of a former process are open.
    for (int i = 0; i < 100 && !told(other_, interrupted).ends_with("started"); ++i) {
      rig_.world.run_for(milliseconds(50));
    }
    rig_.restart(other_);
    wait([this] { return rig_.settled(); });
    rig_.world.run_for(seconds(5));
    note("restarted", state(other_) + ", " + told(other_, interrupted));
    scavenge("resumes after a restart", other_, true);

    note("priority", said(ask(at(leader_).set_priority(-1))));
    rig_.world.run_for(seconds(3));
    note("gossip", members(leader_));
    note("resign of a follower", said(ask(at(follower_).resign())));
    rig_.world.run_for(seconds(3));
    note("leads on", rig_.leader() == leader_ ? "yes" : "no");
    const auto epoch = rig_.node(leader_)->positions().epoch_number;
    note("resign", said(ask(at(leader_).resign())));
    wait([this] { return rig_.settled() && rig_.leader() != leader_; });
    rig_.world.run_for(seconds(3));
    note("leads on", rig_.leader() == leader_ ? "yes" : "no");
    note("epoch grew", rig_.node(leader_)->positions().epoch_number > epoch ? "yes" : "no");
    note("gossip", members(leader_));
    return std::move(notes_);
  }

 private:
  client::NodeClient at(const std::string& name) {
    return {rig_.world.host("client").client(),
            {.tls = false, .host = name, .port = kModelNodePort},
            client::Credentials{"admin", "changeit"}};
  }
  template <class T>
  client::Outcome<T> ask(net::awaitable<client::Outcome<T>> work) {
    const auto answer = std::make_shared<std::optional<client::Outcome<T>>>();
    rig_.world.host("client").spawn(keep(std::move(work), answer));
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
    if (!rig_.world.run_until(done, seconds(120))) {
      ADD_FAILURE() << "in vain, after " << (notes_.empty() ? "the start" : notes_.back());
    }
  }
  void idle(const std::string& name) {
    wait([this, &name] { return !rig_.node(name)->running_scavenge().has_value(); });
    rig_.world.run_for(seconds(3));  // until its end is told everywhere
  }
  void scavenge(std::string_view what, const std::string& name, bool sync_only) {
    const auto started = ask(at(name).start_scavenge({.sync_only = sync_only}));
    idle(name);
    note(what, fmt::format("{}, {}, {}", said(started), state(name),
                           started.value ? told(name, started.value->id) : ""));
  }
  std::string current(const std::string& name) {
    const auto current = ask(at(name).current_scavenge());
    return fmt::format("{} {}", said(current), current.value && current.value->id.empty());
  }
  std::string state(const std::string& name) {
    const auto finished = rig_.node(name)->last_finished_point();
    const auto unfinished = rig_.node(name)->unfinished_scavenge();
    return fmt::format("finished {} unfinished {}", finished ? finished->number : -1,
                       unfinished ? unfinished->point.number : -1);
  }
  /// Its start, whether it told of work, its end.
  std::string told(const std::string& name, const std::string& id) {
    const auto log = ask(at(name).scavenge_log(id, 20));
    std::string text = said(log);
    bool worked = false;
    for (const auto& event : log.value.value_or(std::vector<api::ScavengeEvent>())) {
      if (event.type == "$scavengeCompleted") {
        text += fmt::format(" {} \"{}\"", event.result, event.error);
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
  return Script({.world = world,
                 .node =
                     [&](const std::string& name) {
                       auto* node = cluster.node(index(name));
                       return node == nullptr ? nullptr : &node->inspection();
                     },
                 .restart =
                     [&](const std::string& name) {
                       cluster.crash(index(name), /*power=*/false);
                       ASSERT_TRUE(cluster.boot(index(name)).has_value());
                     }})
      .run();
}

std::vector<std::string> of_models() {
  SimWorld world(7);
  for (const auto* name : {"n1", "n2", "n3", "client"}) {
    world.add_host(name).boot();
  }
  ModelCluster model(world, {.voters = {"n1", "n2", "n3"}}, 11);
  const auto boot = [&](const std::string& name) {
    auto node = model.boot(name);
    world.host(name).serve_http(kModelNodePort, node->handler());
    world.host(name).keep(std::move(node));
  };
  for (const auto* name : {"n1", "n2", "n3"}) {
    boot(name);
  }
  model.begin();
  auto notes = Script({.world = world,
                       .node = [&](const std::string& name) -> node::NodeInspection* {
                         return model.node(name);
                       },
                       .restart =
                           [&](const std::string& name) {
                             world.host(name).crash(/*power=*/false);
                             world.host(name).boot();
                             boot(name);
                           }})
                   .run();
  for (const auto* name : {"n1", "n2", "n3"}) {
    world.host(name).crash(/*power=*/false);
  }
  return notes;
}

TEST(Model, AnswersAsTheEmbeddedNodeDoes) {
  const auto expected = of_embedded_nodes();
  const auto seen = of_models();
  ASSERT_EQ(expected.size(), seen.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i], seen[i]) << "step " << i;
  }
}

}  // namespace
}  // namespace verger::sim
