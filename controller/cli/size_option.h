#pragma once

namespace CLI {
class Option;
}  // namespace CLI

namespace verger::cli {

/// The option takes a size, "4096" or "250KiB" (KiB, MiB, GiB, TiB: powers of 1024), and its value
/// is the number of bytes. Another text is a usage error that says which forms are accepted.
void take_size(CLI::Option& option);

}  // namespace verger::cli
