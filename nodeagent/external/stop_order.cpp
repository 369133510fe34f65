#include "nodeagent/external/stop_order.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/bytes.h"
#include "engine/base/directories.h"

namespace verger::external {

Result<void> StopOrder::give(std::string_view by, std::string_view instance) {
  const auto text = fmt::format("{}\n{}\n", by, instance);
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

std::optional<std::pair<std::string, std::string>> StopOrder::read() const {
  std::string text = in_memory_;
  if (!file_.empty()) {
    const auto content = read_file(*files_, file_);
    if (!content && content.error().code == Errc::kNotFound) {
      return std::nullopt;
    }
    if (!content) {
      return std::pair(fmt::format("({})", content.error().message), std::string());
    }
    text = as_text(*content);
    if (text.empty()) {
      text = file_.string();
    }
  }
  if (text.empty()) {
    return std::nullopt;
  }
  const auto first = std::min(text.find('\n'), text.size());
  const auto second = std::min(text.find('\n', first + 1), text.size());
  return std::pair(text.substr(0, first), first < text.size()
                                              ? text.substr(first + 1, second - first - 1)
                                              : std::string());
}

std::string StopOrder::given_by() const {
  const auto order = read();
  return order ? order->first : std::string();
}

bool StopOrder::has_lapsed(std::string_view running_instance) const {
  const auto order = read();
  return order && order->second != running_instance;
}

}  // namespace verger::external
