#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

/// What a notification looks like to its recipient. `event` is the document that is described in
/// docs/operations/vergerd.md#notifications.
namespace verger::controller {

/// The names that a policy takes for `format`: "json" is the event itself, the others are what the
/// chat services of that name take.
const std::vector<std::string>& notification_formats();

/// One line without control characters: "orders: run 7980f017 failed: ...".
std::string notification_line(const nlohmann::json& event);
/// The body of a webhook. Error: kInvalidArgument: no such format.
Result<std::string> notification_body(std::string_view format, const nlohmann::json& event);
/// The text of a mail: the line, and below it each member of the event.
std::string notification_text(const nlohmann::json& event);

/// Whether a mail can go there: one name, one "@", one domain, and nothing that would end a line or
/// a command of SMTP.
bool is_mail_address(std::string_view text);

}  // namespace verger::controller
