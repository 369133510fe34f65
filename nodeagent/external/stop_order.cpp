#include "nodeagent/external/stop_order.h"

#include <fmt/format.h>
#include <sstream>

#include "engine/base/bytes.h"
#include "engine/base/directories.h"

namespace verger::external {
namespace {

/// The third line, until the server has stopped.
constexpr std::string_view kMayRun = "may run";

}  // namespace

Result<void> StopOrder::give(std::string_view by) { return write({.by = std::string(by)}); }

Result<void> StopOrder::give_to_running(std::string_view by, std::string_view instance) {
  return write({.by = std::string(by), .instance = std::string(instance), .may_run = true});
}

Result<void> StopOrder::note_stopped() {
  auto order = read();
  if (!order || !order->may_run) {
    return {};
  }
  order->may_run = false;
  return write(*order);
}

Result<void> StopOrder::write(const Order& order) {
  const auto text = fmt::format("{}\n{}\n{}", order.by, order.instance,
                                order.may_run ? fmt::format("{}\n", kMayRun) : std::string());
  if (file_.empty()) {
    in_memory_ = text;
    return {};
  }
  VERGER_RETURN_IF_ERROR(make_directories_durably(*files_, file_.parent_path()));
  return write_file_durably(*files_, file_, as_bytes(text));
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
  std::string third;
  std::getline(lines, order.by);
  std::getline(lines, order.instance);
  std::getline(lines, third);
  order.may_run = third == kMayRun;
  return order;
}

std::string StopOrder::given_by() const {
  const auto order = read();
  return order ? order->by : std::string();
}

Result<bool> StopOrder::has_lapsed(std::string_view running_instance) {
  auto order = read();
  if (!order || order->instance == running_instance) {
    return false;
  }
  if (!order->may_run) {
    return true;
  }
  order->instance = running_instance;
  VERGER_RETURN_IF_ERROR(write(*order));
  return false;
}

}  // namespace verger::external
