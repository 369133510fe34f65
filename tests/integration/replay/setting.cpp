#include "tests/integration/replay/setting.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "engine/base/digest.h"

namespace verger::testing {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

NodeClusterOptions base_options() {
  NodeClusterOptions options;
  options.job_budget = Budget{16};
  return options;
}

http::Request with(http::Request request, std::string_view user, std::string_view password) {
  request.headers.set("Authorization", http::basic_authorization(user, password));
  return request;
}

http::Request post_json(const std::string& target, const json& body) {
  http::Request request{.method = "POST", .target = target};
  request.headers.set("Content-Type", "application/json");
  request.body = body.dump();
  return request;
}

}  // namespace

Setting::Setting(const NodeClusterOptions& options) : world(1), cluster(world, options) {
  cluster.boot_all();
  EXPECT_TRUE(cluster.run_until_settled());
  world.run_for(200ms);
  EXPECT_TRUE(cluster.run_until_level());
}

http::Response Setting::send(std::size_t i, http::Request request) {
  auto answer = cluster.request(i, std::move(request), 60s);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer ? *std::move(answer) : http::Response{.status = 0};
}

void Setting::create_users(bool disable_dora) {
  const auto create = [&](const char* login, const char* full_name, json groups) {
    const auto answer = send(leader(), with(post_json("/users", {{"loginName", login},
                                                                 {"fullName", full_name},
                                                                 {"groups", std::move(groups)},
                                                                 {"password", "secret1"}}),
                                            "admin", "changeit"));
    EXPECT_EQ(answer.status, 201) << login;
  };
  create("alice", "Alice", json::array());
  create("oscar", "Oscar", {"$ops"});
  create("ada", "Ada", {"$admins"});
  create("dora", "Dora", {"$ops"});
  if (disable_dora) {
    EXPECT_EQ(send(leader(), with({.method = "POST", .target = "/users/dora/command/disable"},
                                  "admin", "changeit"))
                  .status,
              200);
  }
  EXPECT_TRUE(cluster.run_until_level());
}

void Setting::fill(int streams, int events, int keep) {
  for (int s = 0; s < streams; ++s) {
    const auto stream = "load-1-" + std::to_string(s);
    auto metadata = post_json("/streams/" + stream + "/metadata", {{"$maxCount", keep}});
    metadata.headers.set("ES-EventId", world.random().uuid().to_string());
    EXPECT_EQ(send(leader(), with(std::move(metadata), "admin", "changeit")).status, 201);
    auto list = json::array();
    for (int e = 0; e < events; ++e) {
      list.push_back({{"eventId", world.random().uuid().to_string()},
                      {"eventType", "t"},
                      {"data", {{"n", e}, {"pad", std::string(1500, 'q')}}}});
    }
    auto append = post_json("/streams/" + stream, list);
    append.headers.set("Content-Type", "application/vnd.eventstore.events+json");
    EXPECT_EQ(send(leader(), with(std::move(append), "admin", "changeit")).status, 201);
  }
}

void Setting::wait_until_idle(std::size_t i) {
  EXPECT_TRUE(world.run_until(
      [&] {
        auto* node = cluster.node(i);
        return node != nullptr && !node->inspection().running_scavenge().has_value();
      },
      120s));
  world.run_for(100ms);
}

void Setting::redact(std::size_t i, const std::string& stream, int n) {
  cluster.crash(i, false);
  constexpr std::uint64_t kHeader = 128;
  constexpr std::size_t kFlags = 10;  // behind type, version and position
  constexpr char kIsRedacted = 0x02;  // of the flags' second byte
  auto& disk = cluster.host(i).disk();
  int found = 0;
  const auto entries = disk.list("/data");
  ASSERT_TRUE(entries.has_value());
  for (const auto& entry : *entries) {
    if (!entry.name.starts_with("chunk-")) {
      continue;
    }
    const Path path = Path("/data") / entry.name;
    auto file = disk.open(path, OpenMode::kReadWrite);
    const bool completed = !file.has_value();  // such files are read-only
    if (completed) {
      ASSERT_TRUE(disk.set_read_only(path, false).has_value());
      file = disk.open(path, OpenMode::kReadWrite);
    }
    ASSERT_TRUE(file.has_value()) << file.error().message;
    Bytes content(*(*file)->size());
    ASSERT_TRUE((*file)->read_exact(0, content).has_value());
    for (std::size_t at = kHeader; at + 4 < content.size();) {
      std::uint32_t length = 0;
      std::memcpy(&length, content.data() + at, sizeof length);
      if (length == 0 || at + 8 + length > content.size()) {
        break;
      }
      std::string record(as_text(ByteView(content).subspan(at + 4, length)));
      const auto data = record.find(fmt::format("{{\n  \"n\": {},", n));
      if (record.contains(stream) && data != std::string::npos) {
        record[kFlags + 1] = static_cast<char>(record[kFlags + 1] | kIsRedacted);
        std::fill(record.begin() + static_cast<std::ptrdiff_t>(data),
                  record.begin() + static_cast<std::ptrdiff_t>(record.rfind('}')) + 1, '\xff');
        EXPECT_TRUE((*file)->write_at(at + 4, as_bytes(record)).has_value());
        if (completed) {  // redacting renews the chunk's sum
          ASSERT_TRUE((*file)->read_exact(0, content).has_value());
          const auto summed = content.size() - sizeof(Md5Digest);
          Md5 sum;
          sum.update(ByteView(content).first(summed));
          EXPECT_TRUE((*file)->write_at(summed, sum.finish()).has_value());
        }
        ++found;
      }
      at += 8 + length;
    }
    if (completed) {
      EXPECT_TRUE(disk.set_read_only(path, true).has_value());
    }
  }
  EXPECT_EQ(found, 1) << stream << " " << n;
  EXPECT_TRUE(cluster.boot(i).has_value());
  EXPECT_TRUE(cluster.run_until_settled());
  world.run_for(200ms);
}

void Setting::restart(std::size_t i) {
  cluster.crash(i, false);
  const auto booted = cluster.boot(i);
  EXPECT_TRUE(booted.has_value());
  EXPECT_TRUE(cluster.run_until_settled());
  world.run_for(200ms);
}

std::size_t Setting::leader() { return cluster.leader().value_or(0); }

std::size_t Setting::follower() {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    auto* node = cluster.node(i);
    if (node != nullptr && node->inspection().state() == api::NodeState::kFollower) {
      return i;
    }
  }
  return 0;
}

std::unique_ptr<Setting> single_node(const node::NodeMisbehaviour& misbehaviour) {
  auto options = base_options();
  options.node.misbehaviour = misbehaviour;
  options.voters = 1;
  return std::make_unique<Setting>(options);
}

std::unique_ptr<Setting> secure_cluster() {
  auto options = base_options();
  options.tls = true;
  options.node.insecure = false;
  return std::make_unique<Setting>(options);
}

std::unique_ptr<Setting> cluster_with_replica() {
  auto options = base_options();
  options.replicas = 1;
  return std::make_unique<Setting>(options);
}

std::optional<std::pair<std::string, std::string>> credentials_of(const std::string& word) {
  static const std::map<std::string, std::pair<std::string, std::string>> known = {
      {"admin", {"admin", "changeit"}}, {"ops", {"ops", "changeit"}},
      {"wrong", {"admin", "wrong"}},    {"unknown", {"nobody", "secret1"}},
      {"user", {"alice", "secret1"}},   {"opsgroup", {"oscar", "secret1"}},
      {"admgroup", {"ada", "secret1"}}, {"disabled", {"dora", "secret1"}},
  };
  if (word == "none") {
    return std::nullopt;
  }
  const auto found = known.find(word);
  return found != known.end() ? found->second : std::pair{word, std::string("secret1")};
}

http::Request request_of(const json& exchange, std::size_t node, const Names& names) {
  const auto& from = exchange["request"];
  http::Request request;
  request.method = from["method"];
  request.target = names.translate(from["path"]);
  request.headers.set("Host", "10.0.0." + std::to_string(node + 1) + ":2113");
  for (const auto& [name, value] : from["headers"].items()) {
    request.headers.set(name, value.get<std::string>());
  }
  if (from["body"].is_string()) {
    request.body = from["body"];
  } else if (!from["body"].is_null()) {
    request.body = from["body"].dump();
  }
  if (const auto known = credentials_of(exchange["credentials"])) {
    request = with(std::move(request), known->first, known->second);
  }
  return request;
}

}  // namespace verger::testing
