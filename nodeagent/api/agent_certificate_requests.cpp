#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/api/detail/certificate_members.h"

/// What is asked of an agent about certificates.
namespace verger::api {
namespace {

/// The names of files in which a server looks for roots.
constexpr std::array<std::string_view, 5> kRootExtensions{".crt", ".cert", ".cer", ".pem", ".der"};

bool is_sha256_text(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void check_sha256(Fields& fields, std::string_view name, std::string_view text) {
  if (!text.empty() && !is_sha256_text(text)) {
    fields.wrong(name, "64 lower-case hexadecimal digits were expected");
  }
}

/// A change is named as operations are.
void need_change(Fields& fields, std::string& into) {
  fields.need("change", into);
  if (into.empty() || into.size() > 128 || !std::ranges::all_of(into, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.' || c == ':';
      })) {
    fields.wrong("change", "1 to 128 letters, digits or -_.: were expected");
  }
}

bool is_root_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' && !name.contains('/') &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; }) &&
         std::ranges::any_of(kRootExtensions,
                             [&](std::string_view end) { return name.ends_with(end); });
}

void write(JsonWriter& out, const CertificateSource& source) {
  out.begin_object();
  known(out, "set", source.set);
  known(out, "node", source.node);
  known(out, "certificatePath", source.certificate_path);
  known(out, "keyPath", source.key_path);
  known(out, "rootsPath", source.roots_path);
  out.end_object();
}

Result<CertificateSource> source_of(JsonView value, const std::string& where) {
  CertificateSource source;
  Fields fields(value, where, Errc::kInvalidArgument);
  fields.read("set", source.set);
  fields.read("node", source.node);
  fields.read("certificatePath", source.certificate_path);
  fields.read("keyPath", source.key_path);
  fields.read("rootsPath", source.roots_path);
  check_sha256(fields, "set", source.set);
  const bool paths =
      !source.certificate_path.empty() || !source.key_path.empty() || !source.roots_path.empty();
  if (source.set.empty() == !paths) {
    fields.wrong("set", "either set and node, or certificatePath and others, were expected");
  } else if (paths ? source.certificate_path.empty() : source.node.empty()) {
    fields.wrong(paths ? "certificatePath" : "node", "is missing");
  }
  for (const auto& path : {source.certificate_path, source.key_path, source.roots_path}) {
    if (!path.empty() && path.front() != '/') {
      fields.wrong("certificatePath", fmt::format("\"{}\" is no absolute path", path));
    }
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return source;
}

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
  read_list(fields, "roots", node.roots,
            [](JsonView element, const std::string& at) -> Result<CertificateSet::Root> {
              CertificateSet::Root root;
              Fields inner(element, at);
              inner.need("name", root.name);
              inner.need("sha256", root.sha256);
              check_sha256(inner, "sha256", root.sha256);
              if (!is_root_file_name(root.name)) {
                inner.wrong("name",
                            "the name of a file that ends with .crt, .cert, .cer, .pem or "
                            ".der was expected");
              }
              VERGER_RETURN_IF_ERROR(inner.result());
              return root;
            });
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
    } else {
      known(out, "key", node.key);
    }
    out.name("roots").begin_list();
    for (const auto& root : node.roots) {
      out.begin_object().member("name", root.name).member("sha256", root.sha256).end_object();
    }
    out.end_list().end_object();
  }
  return out.end_object().end_object().take();
}

std::string to_text(const CertificateSource& source) {
  JsonWriter out;
  out.begin_object().name("source");
  write(out, source);
  return out.end_object().take();
}

std::string to_text(const CertificateKeyRequest& request) {
  JsonWriter out;
  out.begin_object().member("change", request.change).member("commonName", request.common_name);
  write_names(out, "dnsNames", request.dns_names);
  write_names(out, "ipAddresses", request.ip_addresses);
  known(out, "keyType", request.key_type);
  return out.end_object().take();
}

std::string to_text(const HandshakesRequest& request) {
  JsonWriter out;
  out.begin_object().name("peers").begin_list();
  for (const auto& peer : request.peers) {
    out.begin_object().member("name", peer.name).member("url", peer.url).end_object();
  }
  out.end_list();
  known(out, "staged", request.staged);
  return out.end_object().take();
}

std::string to_text(const CertificateStage& parameters) {
  JsonWriter out;
  out.begin_object().member("change", parameters.change).name("source");
  write(out, parameters.source);
  known(out, "serial", parameters.serial);
  known(out, "digest", parameters.digest);
  return out.end_object().take();
}

std::string to_text(const CertificateSwitch& parameters) {
  JsonWriter out;
  return out.begin_object()
      .member("change", parameters.change)
      .member("phase", to_string(parameters.phase))
      .member("reload", to_string(parameters.reload))
      .end_object()
      .take();
}

std::string to_text(const CertificateRestore& parameters) {
  JsonWriter out;
  return out.begin_object()
      .member("change", parameters.change)
      .member("phase", to_string(parameters.phase))
      .end_object()
      .take();
}

std::string to_text(const CertificateDiscard& parameters) {
  return JsonWriter().begin_object().member("change", parameters.change).end_object().take();
}

Result<CertificateSet> parse_certificate_set(std::string_view text) {
  return parse_as(text, "certificate set", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateSet> {
                    CertificateSet set;
                    const auto nodes = value.is_object() ? value.find("nodes") : std::nullopt;
                    if (!nodes || !nodes->is_object()) {
                      return Error{Errc::kCorruption, where + ".nodes: an object was expected"};
                    }
                    for (const auto& name : nodes->names()) {
                      VERGER_TRY(auto node, set_node_of(*nodes->find(name.string()),
                                                        where + ".nodes." + name.string()));
                      set.nodes.insert_or_assign(name.string(), std::move(node));
                    }
                    return set;
                  });
}

Result<CertificateSource> parse_certificate_source(std::string_view body) {
  return parse_as(body, "request", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateSource> {
                    CertificateSource source;
                    Fields fields(value, where);
                    fields.require("source");
                    read_member(fields, "source", source, &source_of);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return source;
                  });
}

Result<CertificateKeyRequest> parse_certificate_key_request(std::string_view body) {
  return parse_as(body, "request", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateKeyRequest> {
                    CertificateKeyRequest out;
                    Fields fields(value, where);
                    need_change(fields, out.change);
                    fields.need("commonName", out.common_name);
                    read_names(fields, "dnsNames", out.dns_names);
                    read_names(fields, "ipAddresses", out.ip_addresses);
                    fields.read("keyType", out.key_type);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<HandshakesRequest> parse_handshakes_request(std::string_view body) {
  return parse_as(
      body, "request", Errc::kInvalidArgument,
      [](JsonView value, const std::string& where) -> Result<HandshakesRequest> {
        HandshakesRequest out;
        Fields fields(value, where);
        fields.require("peers");
        read_list(fields, "peers", out.peers,
                  [](JsonView element, const std::string& at) -> Result<HandshakesRequest::Peer> {
                    HandshakesRequest::Peer peer;
                    Fields inner(element, at);
                    inner.need("name", peer.name);
                    inner.need("url", peer.url);
                    VERGER_RETURN_IF_ERROR(inner.result());
                    return peer;
                  });
        fields.read("staged", out.staged);
        VERGER_RETURN_IF_ERROR(fields.result());
        return out;
      });
}

Result<CertificateStage> parse_certificate_stage(std::string_view parameters) {
  return parse_as(parameters, "parameters", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateStage> {
                    CertificateStage out;
                    Fields fields(value, where);
                    need_change(fields, out.change);
                    fields.require("source");
                    read_member(fields, "source", out.source, &source_of);
                    fields.read("serial", out.serial);
                    fields.read("digest", out.digest);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<CertificateSwitch> parse_certificate_switch(std::string_view parameters) {
  return parse_as(parameters, "parameters", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateSwitch> {
                    CertificateSwitch out;
                    Fields fields(value, where);
                    need_change(fields, out.change);
                    fields.require("phase");
                    read_word(fields, "phase", out.phase, &parse_certificate_phase);
                    read_word(fields, "reload", out.reload, &parse_reload_by);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<CertificateRestore> parse_certificate_restore(std::string_view parameters) {
  return parse_as(parameters, "parameters", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateRestore> {
                    CertificateRestore out;
                    Fields fields(value, where);
                    need_change(fields, out.change);
                    fields.require("phase");
                    read_word(fields, "phase", out.phase, &parse_certificate_phase);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<CertificateDiscard> parse_certificate_discard(std::string_view parameters) {
  return parse_as(parameters, "parameters", Errc::kInvalidArgument,
                  [](JsonView value, const std::string& where) -> Result<CertificateDiscard> {
                    CertificateDiscard out;
                    Fields fields(value, where);
                    need_change(fields, out.change);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

}  // namespace verger::api
