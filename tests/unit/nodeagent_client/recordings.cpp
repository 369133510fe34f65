#include "tests/unit/nodeagent_client/recordings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "nodeagent/api/json_text.h"
#include "tests/support/fixtures.h"

namespace verger::client::test {
namespace {

using nlohmann::json;

/// The files hold JSON bodies parsed; the server indents by two spaces.
std::string body_of(const json& response, std::string_view content_type) {
  const auto& body = response.at("body");
  if (body.is_null()) {
    return {};
  }
  if (body.is_string()) {
    auto text = body.get<std::string>();
    const bool was_json = content_type.contains("json") && !text.empty() && !json::accept(text);
    return was_json ? api::to_text(body) : text;
  }
  return api::to_indented_text(body);
}

std::vector<Recording> read_recordings() {
  std::vector<Recording> out;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(verger::test::fixtures_directory() / "node-interface")) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  for (const auto& path : files) {
    std::ifstream stream(path);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const auto exchanges = json::parse(text);
    for (const auto& exchange : exchanges) {
      if (!exchange.contains("request") || !exchange["request"].contains("method")) {
        continue;
      }
      const auto& request = exchange["request"];
      const auto& response = exchange.at("response");
      Recording recording{.file = path.filename().string(),
                          .title = exchange.value("title", ""),
                          .method = request["method"],
                          .path = request["path"],
                          .accept = request["headers"].value("Accept", ""),
                          .credentials = exchange.value("credentials", "")};
      recording.response.status = response.at("status");
      recording.response.reason = response.at("reason");
      for (const auto& [name, value] : response.at("headers").items()) {
        recording.response.headers.add(name, value.get<std::string>());
      }
      const auto& body = response.at("body");
      recording.is_cut = (body.is_object() && body.contains("trimmed")) || body == "(page)" ||
                         (recording.file == "atom.json" && recording.title == "read after that");
      recording.response.body =
          body_of(response, recording.response.headers.get("Content-Type").value_or(""));
      out.push_back(std::move(recording));
    }
  }
  EXPECT_GE(out.size(), 400U) << "recordings are missing";
  return out;
}

}  // namespace

std::vector<Recording> all_recordings() {
  static const std::vector<Recording> kAll = read_recordings();
  return kAll;
}

std::vector<Recording> recordings_titled(const std::string& file, const std::string& title) {
  auto all = all_recordings();
  std::erase_if(all, [&](const Recording& r) { return r.file != file || r.title != title; });
  EXPECT_FALSE(all.empty()) << file << " has no \"" << title << "\"";
  return all;
}

}  // namespace verger::client::test
