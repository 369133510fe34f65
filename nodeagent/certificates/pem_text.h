#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

/// Questions about certificates and keys as texts.
namespace verger::certificates {

/// The certificates of a text, PEM or DER, in order, each as PEM: nothing else of the text, such as
/// a key, is in it. Error: kInvalidArgument: there is none.
Result<std::vector<std::string>> pem_list(std::string_view text);
/// The same, one behind the other.
Result<std::string> pem_of(std::string_view text);

/// The first of a text, PEM; empty where none can be read.
std::string leaf_pem(std::string_view chain);
/// Those behind the first of `chain` that are not among `known`, PEM.
std::string intermediates_pem(std::string_view chain, std::string_view known = {});

/// Whether `key` is that of the first of `certificates`. Error: kInvalidArgument: one of them
/// cannot be read, for example since the key is encrypted with another password.
Result<bool> key_fits(std::string_view certificates, std::string_view key,
                      const std::string& password);
/// Of a PEM key.
bool is_encrypted_key(std::string_view key);

/// Why no chain leads from the first of `chain` to one of `roots`; empty: one does. With `at` the
/// dates are those of then, else of now.
std::string why_not_chained(std::string_view chain, std::string_view roots,
                            std::optional<Ticks> at = std::nullopt);

}  // namespace verger::certificates
