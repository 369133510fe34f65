#pragma once

#include <chrono>
#include <future>
#include <sstream>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "engine/base/random.h"
#include "nodeagent/redaction/redact_program.h"

namespace verger::online {

struct ProgramRun {
  int code = 0;
  std::string out{};
  std::string err{};
};

/// Runs verger-redact beside the node of `context`, which serves it meanwhile.
inline ProgramRun run_program(boost::asio::io_context& context,
                              const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  auto ended = std::async(std::launch::async, [&] {
    std::vector<const char*> words{"verger-redact"};
    for (const auto& each : arguments) {
      words.push_back(each.c_str());
    }
    const auto code = run_redact_program(static_cast<int>(words.size()), words.data(),
                                         {.files = posix_file_system(),
                                          .random = system_random(),
                                          .log = null_log(),
                                          .out = out,
                                          .err = err});
    boost::asio::post(context, [&context] { context.stop(); });
    return code;
  });
  context.restart();
  context.run_for(std::chrono::seconds(30));
  const auto code = ended.get();
  return {.code = code, .out = out.str(), .err = err.str()};
}

}  // namespace verger::online
