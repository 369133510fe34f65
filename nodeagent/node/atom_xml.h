#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// The XML forms of AtomPub, made from the JSON ones (atom_format.h).
namespace verger::node::atom {

/// A page: what backward_page() and its like gave.
std::string feed_xml(const nlohmann::ordered_json& feed);
/// The entry of one event: what entry_with_content() gave.
std::string entry_xml(const nlohmann::ordered_json& entry);
/// A JSON value as an element `root`: members are elements, arrays repeat theirs, null is empty.
std::string value_xml(std::string_view root, const nlohmann::ordered_json& value);

}  // namespace verger::node::atom
