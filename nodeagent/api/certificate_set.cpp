#include <algorithm>
#include <array>

#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/api/detail/field_table.h"
#include "nodeagent/api/detail/request_document.h"
#include "nodeagent/api/detail/sha256_field.h"

/// Sets of certificates: files of the agents' stores, made by a controller.
namespace verger::api {
namespace {

/// The names of files in which a server looks for roots.
constexpr std::array<std::string_view, 5> kRootExtensions{".crt", ".cert", ".cer", ".pem", ".der"};

bool is_root_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' && !name.contains('/') &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; }) &&
         std::ranges::any_of(kRootExtensions,
                             [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

static constexpr auto rows_of(const CertificateSet::Root* /*type*/) {
  using T = CertificateSet::Root;
  return std::tuple{needed_row("name", &T::name), needed_row("sha256", &T::sha256)};
}

static void check_rows(Fields& fields, const CertificateSet::Root& root) {
  check_sha256(fields, "sha256", root.sha256);
  if (!is_root_file_name(root.name)) {
    fields.wrong("name",
                 "the name of a file that ends with .crt, .cert, .cer, .pem or .der was expected");
  }
}

namespace {

/// Its key is a file's, or {"request": CHANGE}: one that the agent made.
Result<CertificateSet::Node> set_node_of(JsonView value, const std::string& where) {
  CertificateSet::Node node;
  Fields fields(value, where);
  fields.need("certificate", node.certificate);
  check_sha256(fields, "certificate", node.certificate);
  if (const auto key = fields.find("key"); key && key->is_object()) {
    Fields inner(*key, where + ".key");
    inner.need("request", node.key_request);
    VERGER_RETURN_IF_ERROR(inner.result());
  } else {
    fields.read("key", node.key);
    check_sha256(fields, "key", node.key);
  }
  read_row(fields, "roots", where, node.roots);
  VERGER_RETURN_IF_ERROR(fields.result());
  return node;
}

}  // namespace

std::string to_text(const CertificateSet& set) {
  JsonWriter out(1'024);
  out.begin_object().name("nodes").begin_object();
  for (const auto& [name, node] : set.nodes) {
    // A node's name may need escapes, which member names of ours never do.
    auto quoted = JsonWriter().value(name).take();
    out.name(std::string_view(quoted).substr(1, quoted.size() - 2)).begin_object();
    out.member("certificate", node.certificate);
    if (!node.key_request.empty()) {
      out.name("key").begin_object().member("request", node.key_request).end_object();
    } else if (!node.key.empty()) {
      out.member("key", node.key);
    }
    out.name("roots");
    write_row_value(out, node.roots);
    out.end_object();
  }
  return out.end_object().end_object().take();
}

Result<CertificateSet> parse_certificate_set(std::string_view text) {
  const std::string what = "certificate set";
  VERGER_TRY(const auto document, request_document(text, what));
  const auto value = document.root();
  const auto nodes = value.is_object() ? value.find("nodes") : std::nullopt;
  if (!nodes || !nodes->is_object()) {
    return Error{Errc::kInvalidArgument, what + ".nodes: an object was expected"};
  }
  CertificateSet set;
  for (const auto& name : nodes->names()) {
    auto node = set_node_of(*nodes->find(name.string()), what + ".nodes." + name.string());
    if (!node) {
      return Error{Errc::kInvalidArgument, std::move(node).error().message};
    }
    set.nodes.insert_or_assign(name.string(), *std::move(node));
  }
  return set;
}

}  // namespace verger::api
