#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {

/// One node that answers requests which no recording holds: other parameters, headers, formats and
/// users. What the answers must be stands in node-interface.md §1.1 to §1.13; where it is silent,
/// in the server's source.
class RequestVariations : public ::testing::Test {
 protected:
  RequestVariations() : world_(1) {
    NodeClusterOptions options;
    options.voters = 1;
    options.node.insecure = false;
    cluster_ = std::make_unique<NodeCluster>(world_, options);
    cluster_->boot_all();
    EXPECT_TRUE(cluster_->run_until_settled());
    world_.run_for(std::chrono::milliseconds(500));
  }
  using Headers = std::vector<std::pair<std::string, std::string>>;
  http::Response ask(const std::string& method, const std::string& target,
                     const Headers& headers = {}, const std::string& body = {},
                     const std::string& user = "admin") {
    http::Request request{.method = method, .target = target, .body = body};
    if (!user.empty()) {
      request.headers.set("Authorization", http::basic_authorization(
                                               user, user == "alice" ? "secret1" : "changeit"));
    }
    for (const auto& [name, value] : headers) {
      request.headers.set(name, value);
    }
    auto answer = cluster_->request(0, std::move(request), std::chrono::seconds(60));
    EXPECT_TRUE(answer.has_value());
    return answer ? *std::move(answer) : http::Response{.status = 0};
  }
  http::Response start(const std::string& query) {
    auto answer = ask("POST", "/admin/scavenge?" + query, {{"Accept", "application/json"}});
    world_.run_until(
        [&] { return !cluster_->node(0)->inspection().running_scavenge().has_value(); },
        std::chrono::seconds(20));
    world_.run_for(std::chrono::milliseconds(100));
    return answer;
  }
  void append(const std::string& stream, const std::string& type, const std::string& data = "{}") {
    const auto answer = ask("POST", "/streams/" + stream,
                            {{"Content-Type", "application/json"},
                             {"ES-EventType", type},
                             {"ES-EventId", world_.random().uuid().to_string()}},
                            data);
    EXPECT_EQ(answer.status, 201) << answer.body;
  }
  void create_alice() {
    EXPECT_EQ(ask("POST", "/users", {{"Content-Type", "application/json"}},
                  R"({"loginName":"alice","fullName":"Alice","groups":[],"password":"secret1"})")
                  .status,
              201);
  }

  SimWorld world_;
  std::unique_ptr<NodeCluster> cluster_;
};

}  // namespace verger::testing
