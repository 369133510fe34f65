#pragma once

namespace CLI {
class Option;
}  // namespace CLI

namespace verger::cli {

/// The option takes a size, "4096" or "250KiB" (KiB, MiB, GiB, TiB: powers of 1024), and its value
/// is the number of bytes. Another text is a usage error that says which forms are accepted.
void take_size(CLI::Option& option);

/// The same of a length of time, "20000" or "20s" (ms, s, m, h, d), in milliseconds. A fraction is
/// an error: what a whole number keeps of it can be 0, which means "no limit" or "not at all".
void take_milliseconds(CLI::Option& option);

}  // namespace verger::cli
