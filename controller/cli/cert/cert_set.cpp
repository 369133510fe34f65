#include "controller/cli/cert/cert_set.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"

namespace verger::cli {
namespace {

using certificates::FileSeen;
using certificates::LintNode;
using nlohmann::json;

CertificateSet::File set_file(std::string content) {
  auto sha = to_hex(sha256(as_bytes(content)));
  return {.sha256 = std::move(sha), .content = std::move(content)};
}

}  // namespace

std::vector<std::string> set_problems(const certificates::LintInput& input,
                                      const std::string& directory, const std::string& cluster,
                                      const std::vector<NodeOfCluster>& nodes) {
  std::vector<std::string> out;
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    names.push_back(node.name);
    if (std::ranges::find(input.nodes, node.name, &LintNode::name) == input.nodes.end()) {
      out.push_back(fmt::format(
          "{0} has no folder {1}: cluster {2} has the node {1}, and all nodes change together",
          directory, node.name, cluster));
    }
    if (!node.has_agent) {
      out.push_back(
          fmt::format("{} of {} has no agent, which alone can replace its files: verger cert "
                      "status and lint work without, the rollout needs an agent on each node",
                      node.name, cluster));
    }
  }
  for (const auto& node : input.nodes) {
    if (std::ranges::find(names, node.name) == names.end()) {
      out.push_back(fmt::format("{}: cluster {} has no node {}; its nodes are: {}",
                                (std::filesystem::path(directory) / node.name).string(), cluster,
                                node.name, fmt::join(names, ", ")));
    }
    for (const auto* file : {&node.next.certificate, node.next.key ? &*node.next.key : nullptr}) {
      if (file != nullptr && !file->unreadable.empty()) {
        out.push_back(fmt::format("{}: {}", node.name, file->unreadable));
      }
    }
  }
  return out;
}

CertificateSet make_set(const certificates::LintInput& input) {
  CertificateSet out;
  auto nodes = json::object();
  for (const auto& node : input.nodes) {
    auto& files = out.files[node.name];
    const auto add = [&files](const FileSeen& seen) {
      files.push_back(set_file(seen.content));
      return files.back().sha256;
    };
    json of_node{{"certificate", add(node.next.certificate)}};
    if (node.next.key) {
      of_node["key"] = add(*node.next.key);
    }
    auto roots = json::array();
    for (const auto& root : node.next.roots) {
      roots.push_back(
          {{"name", std::filesystem::path(root.path).filename().string()}, {"sha256", add(root)}});
    }
    if (!roots.empty()) {
      of_node["roots"] = std::move(roots);
    }
    nodes[node.name] = std::move(of_node);
  }
  out.manifest = set_file(json{{"nodes", std::move(nodes)}}.dump());
  return out;
}

}  // namespace verger::cli
