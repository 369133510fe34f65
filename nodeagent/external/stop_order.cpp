#include "nodeagent/external/stop_order.h"

#include <fmt/format.h>
#include <sstream>

#include "engine/base/bytes.h"
#include "engine/base/directories.h"

namespace verger::external {
namespace {

/// The second line, until the server has stopped. (Former versions have the server's instance
/// there.)
constexpr std::string_view kMayRun = "may run";

}  // namespace

Result<void> StopOrder::give(std::string_view by, Server server) {
  const auto text = fmt::format("{}\n{}\n", by, server == Server::kMayRun ? kMayRun : "");
  if (file_.empty()) {
    in_memory_ = text;
    return {};
  }
  VERGER_RETURN_IF_ERROR(make_directories_durably(*files_, file_.parent_path()));
  return write_file_durably(*files_, file_, as_bytes(text));
}

Result<void> StopOrder::note_stopped() {
  const auto order = read();
  return order && order->server == Server::kMayRun ? give(order->by, Server::kStopped)
                                                   : Result<void>();
}

Result<void> StopOrder::lift() {
  if (file_.empty()) {
    in_memory_.clear();
    return {};
  }
  const auto removed = files_->remove(file_);
  if (!removed) {
    return removed.error().code == Errc::kNotFound ? Result<void>() : removed;
  }
  return files_->sync_directory(file_.parent_path());
}

std::optional<StopOrder::Order> StopOrder::read() const {
  std::string text = in_memory_;
  if (!file_.empty()) {
    const auto content = read_file(*files_, file_);
    if (!content && content.error().code == Errc::kNotFound) {
      return std::nullopt;
    }
    if (!content) {
      return Order{.by = fmt::format("({})", content.error().message)};
    }
    text = as_text(*content);
    if (text.empty()) {
      text = file_.string();
    }
  }
  if (text.empty()) {
    return std::nullopt;
  }
  std::istringstream lines(text);
  Order order;
  std::string second;
  std::getline(lines, order.by);
  std::getline(lines, second);
  order.server = second == kMayRun ? Server::kMayRun : Server::kStopped;
  return order;
}

std::string StopOrder::given_by() const {
  const auto order = read();
  return order ? order->by : std::string();
}

bool StopOrder::is_of_stopped_server() const {
  const auto order = read();
  return order && order->server == Server::kStopped;
}

}  // namespace verger::external
