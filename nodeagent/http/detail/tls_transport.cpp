#include "nodeagent/http/detail/tls_transport.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace verger::http {
namespace {

using tcp = net::ip::tcp;
constexpr auto kTuple = net::as_tuple(net::use_awaitable);

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
void free_names(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<free_names>>;

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(const ASN1_OCTET_STRING* octets) {
  const auto bytes = text_of(octets);
  if (bytes.size() == 4) {
    net::ip::address_v4::bytes_type v4{};
    std::memcpy(v4.data(), bytes.data(), v4.size());
    return net::ip::make_address_v4(v4).to_string();
  }
  if (bytes.size() == 16) {
    net::ip::address_v6::bytes_type v6{};
    std::memcpy(v6.data(), bytes.data(), v6.size());
    return net::ip::make_address_v6(v6).to_string();
  }
  return {};
}

/// Fills in what a verified certificate says about its owner.
void describe_certificate(SSL* ssl, Peer& peer) {
  const Certificate certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) {
    return;
  }
  const auto* subject = X509_get_subject_name(certificate.get());
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    peer.certificate_common_name =
        text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  } else {
    peer.certificate_common_name.emplace();
  }
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      peer.certificate_names.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      peer.certificate_names.push_back(address_of(name->d.iPAddress));
    }
  }
  peer.certificate_is_node =
      X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_SERVER, 0) == 1 &&
      X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_CLIENT, 0) == 1;
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket plain, std::shared_ptr<const TlsContext::Impl::Loaded> settings)
      : Transport(std::move(plain)),
        settings_(std::move(settings)),
        stream_(socket(), *settings_->context) {}

  net::awaitable<IoResult> shake_hands(net::ssl::stream_base::handshake_type side,
                                       std::string host) {
    if (side == net::ssl::stream_base::client) {
      boost::system::error_code is_name;
      net::ip::make_address(host, is_name);
      if (is_name) {
        SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
      }
      stream_.set_verify_callback(net::ssl::host_name_verification(host));
    }
    auto [error] = co_await stream_.async_handshake(side, kTuple);
    if (!error) {
      describe_certificate(stream_.native_handle(), peer_);
    }
    co_return finish(error, 0);
  }

  /// Why the other side's certificate was not accepted; empty when that was not it.
  std::string verification_text() {
    const long result = SSL_get_verify_result(stream_.native_handle());
    return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
  }

  net::awaitable<IoResult> read_some(net::mutable_buffer into) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await stream_.async_read_some(into, kTuple);
    co_return finish(error, bytes);
  }

  net::awaitable<IoResult> write(net::const_buffer from) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await net::async_write(stream_, from, kTuple);
    // A record may be out although none of its bytes count as written.
    co_return finish(error, error ? std::max<std::size_t>(bytes, 1) : bytes);
  }

  net::awaitable<void> finish_sending() override {
    // close_notify, and the peer's, which some never send.
    expires_after(std::chrono::seconds(1));
    co_await stream_.async_shutdown(kTuple);
    boost::system::error_code ignored;
    socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  bool quiet() override {
    if (!socket().is_open() || SSL_pending(stream_.native_handle()) > 0) {
      return false;
    }
    pollfd wait{.fd = socket().native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) == 0;
  }

 private:
  std::shared_ptr<const TlsContext::Impl::Loaded> settings_;
  net::ssl::stream<tcp::socket&> stream_;
};

}  // namespace

net::awaitable<Result<std::shared_ptr<Transport>>> accept_tls(
    tcp::socket socket, std::shared_ptr<TlsContext> tls,
    std::chrono::steady_clock::duration limit) {
  const auto transport = std::make_shared<TlsTransport>(std::move(socket), tls->impl().current());
  transport->expires_after(limit);
  const auto shaken = co_await transport->shake_hands(net::ssl::stream_base::server, "");
  if (shaken.error) {
    const auto verification = transport->verification_text();
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: TLS handshake: {}{}{}", transport->peer().address,
                                shaken.text(), verification.empty() ? "" : ": ", verification)};
  }
  co_return std::static_pointer_cast<Transport>(transport);
}

net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls(
    tcp::socket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit) {
  const auto transport = std::make_shared<TlsTransport>(std::move(socket), tls->impl().current());
  transport->expires_at(limit);
  const auto shaken = co_await transport->shake_hands(net::ssl::stream_base::client, to.host);
  if (shaken.error) {
    const auto verification = transport->verification_text();
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: TLS handshake: {}{}{}", to.url(), shaken.text(),
                                verification.empty() ? "" : ": ", verification)};
  }
  co_return std::static_pointer_cast<Transport>(transport);
}

}  // namespace verger::http
